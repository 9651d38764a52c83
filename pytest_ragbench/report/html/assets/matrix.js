// Questions down, systems across: fifty at a time.
const PAGE = 50;
const state = { page: 0, text: "", metric: "", only: "differ" };

const value = (cell, metric) => (cell && cell.scores[metric] !== undefined ? cell.scores[metric] : null);

function spreadOf(row) {
  if (!state.metric) return row.spread;
  const found = row.cells.map((cell) => value(cell, state.metric)).filter((each) => each !== null);
  return found.length > 1 ? Math.max(...found) - Math.min(...found) : 0;
}

function outcomesDiffer(row) {
  return new Set(row.cells.map((cell) => (cell ? cell.outcome : "not asked"))).size > 1;
}

function chosen() {
  const words = folded(state.text).split(/\s+/).filter(Boolean);
  const rows = ROWS.filter((row) => {
    if (state.only === "differ" && spreadOf(row) === 0 && !outcomesDiffer(row)) return false;
    if (state.only === "outcome" && !outcomesDiffer(row)) return false;
    if (!words.length) return true;
    const answers = row.cells.flatMap((cell) => (cell && cell.answer ? cell.answer.map((piece) => piece[0]) : []));
    const text = folded([row.id, row.question, row.reference || "", answers.join("")].join(" "));
    return words.every((word) => text.includes(word));
  });
  return rows.sort((one, other) => spreadOf(other) - spreadOf(one));
}

function scores(row, cell) {
  return DATA.metrics.filter((metric) => value(cell, metric.name) !== null).map((metric) => {
    const all = row.cells.map((each) => value(each, metric.name)).filter((each) => each !== null);
    const best = metric.higher ? Math.max(...all) : Math.min(...all);
    const mine = value(cell, metric.name);
    const ahead = all.length > 1 && mine === best && all.some((each) => each !== best);
    return h("li", null, metric.name + " ", h("span", { class: ahead ? "yes-cell" : "" }, mine.toFixed(2) + (ahead ? " ▲" : "")));
  });
}

function shownCell(row, cell, place) {
  const title = h("strong", { class: "sr" }, DATA.systems[place] + ": ");
  if (!cell) return h("td", { class: "dim" }, title, "not asked");
  const answer = cell.answer === null
    ? h("p", { class: "dim" }, "no answer")
    : h("p", { class: "text" }, cell.answer.map((piece) => (piece[1] ? h("mark", { class: "other" }, piece[0]) : piece[0])));
  return h("td", null, title, pill(cell.outcome), answer,
    cell.answers > 1 && h("p", { class: "dim" }, cell.answers + " different answers; this is the first"),
    cell.message && cell.outcome !== "passed" && h("p", { class: "dim" }, cell.message),
    h("ul", { class: "plain" }, scores(row, cell),
      cell.latency !== null && h("li", { class: "dim" }, cell.latency.toFixed(2) + " s")));
}

function draw() {
  const rows = chosen();
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  state.page = Math.min(state.page, pages - 1);
  const body = rows.slice(state.page * PAGE, (state.page + 1) * PAGE).map((row) => h("tr", null,
    h("th", { scope: "row", class: "q" }, h("span", { class: "dim" }, row.id === row.question ? "" : row.id), h("p", null, row.question),
      row.reference && h("p", { class: "dim" }, "reference: " + row.reference)),
    row.cells.map((cell, place) => shownCell(row, cell, place))));
  fill(byId("rows"), body);
  byId("count").textContent = rows.length + " of " + ROWS.length + " questions";
  byId("place").textContent = "page " + (state.page + 1) + " of " + pages;
  byId("back").disabled = state.page === 0;
  byId("on").disabled = state.page >= pages - 1;
}

function change(name, turned) {
  return (event) => { state[name] = event.target.value; state.page = turned ? state.page : 0; draw(); };
}

fill(byId("metric"), option("", "any metric", ""), DATA.metrics.map((metric) => option(metric.name, metric.name, "")));
byId("search").addEventListener("input", change("text"));
byId("metric").addEventListener("change", change("metric"));
byId("only").addEventListener("change", change("only"));
byId("back").addEventListener("click", () => { state.page -= 1; draw(); });
byId("on").addEventListener("click", () => { state.page += 1; draw(); });
draw();
