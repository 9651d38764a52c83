"use strict";
// The table of questions: filtered and sorted as a whole, shown a page at a time.
const SIZE = 50;
const TABLE = { text: "", outcome: "", metric: "", tag: "", system: "", below: "", cause: "", sort: "bad", down: true, page: 0, found: [] };

// Folded once, when the first search is typed.
const haystacks = [];
function haystack(row) {
  const place = row.place;
  if (haystacks[place] === undefined) {
    haystacks[place] = folded([row.id, row.question, row.answer, row.reference, row.file].filter(Boolean).join("\n"));
  }
  return haystacks[place];
}

function scoreOf(row, metric) {
  let worst;
  for (const score of row.scores || []) {
    if (score.metric !== metric) continue;
    if (worst === undefined || score.value === undefined || score.passed === false) worst = score;
  }
  return worst;
}

function matches(row, words) {
  if (TABLE.outcome && row.outcome !== TABLE.outcome) return false;
  if (TABLE.cause !== "" && row.cause !== Number(TABLE.cause)) return false;
  if (TABLE.system && row.system !== TABLE.system) return false;
  if (TABLE.tag && !(row.tags || []).includes(TABLE.tag)) return false;
  if (TABLE.metric) {
    const score = scoreOf(row, TABLE.metric);
    if (score === undefined) return false;
    if (TABLE.below === "missed" && score.passed !== false) return false;
    if (TABLE.below === "none" && score.value !== undefined) return false;
  }
  return words.every((word) => haystack(row).includes(word));
}

function sortKey(row) {
  if (TABLE.sort === "bad") return row.bad || 0;
  if (TABLE.sort === "question") return row.id || row.question;
  if (TABLE.sort === "outcome") return row.outcome;
  if (TABLE.sort === "latency") return row.latency;
  return (scoreOf(row, TABLE.sort) || {}).value;
}

function findRows() {
  const words = folded(TABLE.text).split(/\s+/).filter(Boolean);
  const found = ROWS.filter((row) => matches(row, words)).map((row) => [sortKey(row), row]);
  const sign = TABLE.down ? -1 : 1;
  const collator = new Intl.Collator(undefined, { numeric: true });
  found.sort(([a, rowA], [b, rowB]) => {
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined) || rowA.place - rowB.place;
    const order = typeof a === "string" ? collator.compare(a, b) : a - b;
    return order * sign || rowA.place - rowB.place;
  });
  TABLE.found = found.map(([, row]) => row);
}

// Which metrics get a column: the chosen one first, then those that were missed most.
function columns() {
  const names = DATA.metrics.filter((metric) => metric.asked).map((metric) => metric.name);
  const first = TABLE.metric ? [TABLE.metric, ...names.filter((name) => name !== TABLE.metric)] : names;
  return first.slice(0, 6);
}

function header(name, text, numeric) {
  const sorted = TABLE.sort === name;
  const arrow = sorted ? (TABLE.down ? " ↓" : " ↑") : "";
  const turn = () => {
    TABLE.down = sorted ? !TABLE.down : name === "bad" || name === "latency";
    TABLE.sort = name;
    refresh();
    byId("head-" + name).focus();
  };
  return h("th", { scope: "col", class: numeric ? "num" : "", "aria-sort": sorted ? (TABLE.down ? "descending" : "ascending") : "none" },
    h("button", { type: "button", id: "head-" + name, onclick: turn }, text + arrow));
}

function cell(row, metric) {
  const score = scoreOf(row, metric);
  if (score === undefined) return h("td", { class: "num dim" }, "");
  if (score.value === undefined) return h("td", { class: "num noscore" }, "no score");
  const missed = score.passed === false;
  return h("td", { class: "num" + (missed ? " miss" : "") }, shown(score.value), missed && h("span", { class: "sr" }, " missed"));
}

function line(row, names) {
  return h("tr", {},
    h("td", {}, pill(row.outcome)),
    h("td", { class: "q" },
      h("a", { href: "#q=" + row.place, class: "cut" }, row.question),
      row.id !== undefined && row.id !== row.question && h("span", { class: "dim" }, row.id),
      " ", row.system !== undefined && h("span", { class: "pill" }, row.system),
      (row.tags || []).map((tag) => h("span", { class: "pill" }, tag))),
    names.map((name) => cell(row, name)),
    h("td", { class: "num" }, shown(row.latency, 2)));
}

function refresh() {
  findRows();
  const pages = Math.max(1, Math.ceil(TABLE.found.length / SIZE));
  TABLE.page = Math.min(Math.max(0, TABLE.page), pages - 1);
  const part = TABLE.found.slice(TABLE.page * SIZE, (TABLE.page + 1) * SIZE);
  const names = columns();
  const table = h("table", {},
    h("caption", { class: "sr" }, "Questions with their scores; the buttons in the header sort"),
    h("thead", {}, h("tr", {}, header("outcome", "outcome"), header("question", "question"),
      names.map((name) => header(name, name, true)), header("latency", "latency, s", true))),
    h("tbody", {}, part.map((row) => line(row, names))));
  byId("rows").replaceChildren(part.length ? table : h("p", {}, "No question matches."));
  const go = (page, id) => () => {
    TABLE.page = page;
    refresh();
    byId("rows").scrollIntoView({ block: "start" });
    const button = byId(id);
    if (button && !button.disabled) button.focus();
    else byId("page").focus();
  };
  const counted = `${TABLE.found.length} of ${ROWS.length} questions`;
  byId("pager").replaceChildren(
    h("button", { type: "button", class: "plain", id: "before", disabled: TABLE.page === 0, onclick: go(TABLE.page - 1, "before") }, "← Previous"),
    h("span", { id: "page", tabindex: "-1" }, `Page ${TABLE.page + 1} of ${pages}`),
    h("button", { type: "button", class: "plain", id: "after", disabled: TABLE.page >= pages - 1, onclick: go(TABLE.page + 1, "after") }, "Next →"),
    h("span", { class: "dim" }, counted));
  byId("count").textContent = counted;
  say(counted);
}

function select(text, name, options) {
  const change = (event) => { TABLE[name] = event.target.value; TABLE.page = 0; refresh(); };
  return h("label", {}, text, h("select", { onchange: change, id: "by-" + name }, options));
}

function drawTable() {
  ROWS.forEach((row, place) => { row.place = place; });
  const outcomes = [...new Set(ROWS.map((row) => row.outcome))].sort();
  const tags = [...new Set(ROWS.flatMap((row) => row.tags || []))].sort();
  const systems = [...new Set(ROWS.map((row) => row.system).filter(Boolean))].sort();
  const names = DATA.metrics.filter((metric) => metric.asked).map((metric) => metric.name);
  let waiting;
  const typed = (event) => {
    clearTimeout(waiting);
    TABLE.text = event.target.value;
    TABLE.page = 0;
    waiting = setTimeout(refresh, 40);
  };
  const sorts = [["bad", "worst first"], ["question", "question"], ["outcome", "outcome"], ["latency", "latency"], ...names.map((name) => [name, name])];
  const sorting = (event) => {
    TABLE.sort = event.target.value;
    TABLE.down = ["bad", "latency"].includes(TABLE.sort);
    refresh();
  };
  const causes = DATA.causes.map((text, place) => option(String(place), text.length > 70 ? text.slice(0, 69) + "…" : text));
  const more = h("details", { id: "more" }, h("summary", {}, "Filters and order"), h("div", { class: "filters" },
    select("Outcome", "outcome", [option("", "all"), ...outcomes.map((name) => option(name))]),
    causes.length > 0 && select("Cause", "cause", [option("", "all"), ...causes]),
    names.length > 0 && select("Metric", "metric", [option("", "all"), ...names.map((name) => option(name))]),
    names.length > 0 && select("Of that metric", "below", [option("", "any score"), option("missed", "missed"), option("none", "no score")]),
    systems.length > 0 && select("System", "system", [option("", "all"), ...systems.map((name) => option(name))]),
    tags.length > 0 && select("Tag", "tag", [option("", "all"), ...tags.map((name) => option(name))]),
    h("label", {}, "Order", h("select", { id: "order", onchange: sorting }, sorts.map(([name, text]) => option(name, text))))));
  fill(byId("table"),
    h("div", { class: "stuck", role: "search" },
      h("div", { class: "filters first" },
        h("label", { class: "wide" }, "Search in questions, answers, references and ids", h("input", { type: "search", id: "search", autocomplete: "off", oninput: typed })),
        h("span", { id: "count", class: "dim" }), h("button", { type: "button", class: "plain", id: "reset", onclick: reset }, "Show all")),
      more),
    h("div", { class: "scroll", id: "rows" }),
    h("div", { class: "pager", id: "pager" }));
  // On a small screen the selects would hide the questions, which scroll below them.
  const wide = window.matchMedia("(min-width: 40rem) and (min-height: 30rem)");
  const fold = () => { more.open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();
  refresh();
}

const FILTERS = ["outcome", "cause", "metric", "below", "system", "tag"];

function filterBy(chosen) {
  TABLE.text = byId("search").value = "";
  for (const name of FILTERS) {
    TABLE[name] = chosen[name] || "";
    if (byId("by-" + name)) byId("by-" + name).value = TABLE[name];
  }
  TABLE.page = 0;
  refresh();
}

function reset() {
  filterBy({});
  if (/^#cause=/.test(location.hash)) history.replaceState(null, "", "#questions");
  byId("search").focus();
}
