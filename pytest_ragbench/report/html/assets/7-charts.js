"use strict";
// So that a chart shrinks with its place, as on paper.
function scales(chart) {
  chart.on("created", (event) => event.svg.attr({ viewBox: `0 0 ${event.svg.width()} ${event.svg.height()}` }));
}

function drawDistribution(node, plot) {
  const width = Math.max(6, Math.min(22, node.clientWidth / (plot.counts.length + 4)));
  const chart = new Chartist.BarChart(node, { labels: plot.edges.slice(0, -1).map((edge) => String(edge)), series: [plot.counts] }, {
    fullWidth: true, chartPadding: { top: 14, right: 4, bottom: 0, left: 0 },
    axisX: { showGrid: false, offset: 18, labelInterpolationFnc: (text, place) => (place % 2 ? null : text) },
    axisY: { onlyInteger: true, offset: 30, scaleMinSpace: 24 },
  });
  scales(chart);
  chart.on("draw", (event) => {
    if (event.type === "bar") event.element.attr({ "stroke-width": width });
  });
}

const LETTERS = "abcdef";
function drawTrend(trend) {
  const series = trend.series.slice(0, LETTERS.length);
  const chart = new Chartist.LineChart(byId("trend"), { labels: trend.runs.map((run) => run.label), series: series.map((one) => one.values) }, {
    fullWidth: true, lineSmooth: false, chartPadding: { top: 10, right: 44, bottom: 0, left: 0 }, axisY: { offset: 36 },
    axisX: { offset: 20, labelInterpolationFnc: (text, place) => (place % Math.ceil(trend.runs.length / 8) ? null : text) },
  });
  scales(chart);
  const NS = "http://www.w3.org/2000/svg";
  byId("trend-legend").replaceChildren(...series.map((one, place) => {
    const key = document.createElementNS(NS, "svg");
    key.setAttribute("viewBox", "0 0 32 10");
    key.setAttribute("aria-hidden", "true");
    const stroke = document.createElementNS(NS, "path");
    stroke.setAttribute("d", "M0 5h32");
    stroke.setAttribute("stroke-width", "3");
    stroke.setAttribute("class", "ct-series ct-series-" + LETTERS[place]);
    key.append(stroke);
    return h("li", {}, key, " ", one.name);
  }));
}

function drawCharts() {
  for (const node of document.querySelectorAll("[data-plot]")) drawDistribution(node, DATA.plots[Number(node.dataset.plot)]);
  if (DATA.trend) drawTrend(DATA.trend);
}

drawTable();
drawBar();
drawCharts();
route();
