"use strict";
// A question's own page.
const SIGN = (ok) => (ok === true ? "✓" : ok === false ? "✗" : "·");
const SPOKEN = (ok) => (ok === true ? "holds: " : ok === false ? "does not hold: " : "");

const CLAIMS = ["claims", "statements"];
const aboutChunks = (score) => (score.evidence || []).some((finding) => finding.chunk !== undefined) || CLAIMS.includes(score.evidence_title || "claims");

function claimsOf(row) {
  const claims = [];
  for (const score of row.scores || []) {
    if (!aboutChunks(score)) continue;
    (score.evidence || []).forEach((finding) => {
      const known = claims.find((claim) => claim.text === finding.text && claim.ok === finding.ok && claim.chunk === finding.chunk);
      if (!known && typeof finding.ok === "boolean") claims.push({ ...finding, number: claims.length + 1 });
    });
  }
  return claims;
}

function facts(pairs) {
  return h("dl", { class: "meta" }, pairs.filter(([, value]) => value !== undefined && value !== "").map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function matrix(claims, count) {
  if (!claims.length || !count) return false;
  const chunks = [...Array(count).keys()].map((place) => place + 1);
  const told = (claim, chunk) => {
    if (claim.chunk !== chunk) return h("td", {});
    return h("td", { class: claim.ok ? "yes-cell" : "no-cell" }, SIGN(claim.ok), h("span", { class: "sr" }, claim.ok ? "supported" : "contradicted"));
  };
  const nowhere = (claim) => (claim.chunk === undefined ? h("td", { class: claim.ok ? "yes-cell" : "no-cell" }, SIGN(claim.ok), h("span", { class: "sr" }, claim.ok ? "supported" : "not supported")) : h("td", {}));
  return h("section", { class: "card" }, h("h2", {}, "Claims × chunks"),
    h("div", { class: "scroll" }, h("table", { class: "matrix" },
      h("caption", { class: "sr" }, "Which chunk each claim's verdict rests on"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "claim"), chunks.map((chunk) => h("th", { scope: "col" }, `[${chunk}]`)), h("th", { scope: "col" }, "no one chunk"))),
      h("tbody", {}, claims.map((claim) => h("tr", {}, h("th", { scope: "row" }, `${claim.number}. ${claim.text}`), chunks.map((chunk) => told(claim, chunk)), nowhere(claim)))))));
}

function chunkList(row, claims) {
  if (row.contexts === undefined) return h("p", { class: "dim" }, "The service sent no chunks.");
  if (!row.contexts.length) return h("p", { class: "dim" }, "Nothing was retrieved.");
  return chunksOf(row).map((text, place) => {
    const id = (row.context_ids || [])[place];
    const relevant = id !== undefined && row.relevant_ids && row.relevant_ids[id] > 0;
    const own = claims.filter((claim) => claim.chunk === place + 1);
    return h("article", { class: "chunk", "aria-label": `Chunk ${place + 1}` },
      h("header", {}, h("strong", {}, `[${place + 1}]`), row.context_scores && h("span", {}, "score " + shown(row.context_scores[place], 3)),
        id !== undefined && h("span", {}, id), relevant && h("span", { class: "pill passed" }, "relevant")),
      h("div", { class: "text" }, own.length ? marked(text, own) : text));
  });
}

function evidenceList(row, score, scorePlace) {
  if (!(score.evidence || []).length) return false;
  return h("ul", { class: "evidence", "aria-label": score.evidence_title || "claims" }, score.evidence.map((finding, place) => h("li", {},
    h("span", { class: finding.ok === false ? "no-cell" : finding.ok ? "yes-cell" : "dim", "aria-hidden": "true" }, SIGN(finding.ok)),
    h("span", {}, h("span", { class: "sr" }, SPOKEN(finding.ok)), finding.text,
      finding.value !== undefined && h("span", { class: "dim" }, "  " + shown(finding.value)),
      finding.chunk !== undefined && h("span", { class: "dim" }, `  chunk ${finding.chunk}`),
      finding.reason && h("span", { class: "dim" }, "  — " + finding.reason)),
    typeof finding.ok === "boolean" && marking(row, scorePlace, place, finding.text))));
}

function scoreBlock(row, score, scorePlace) {
  const usage = score.usage || {};
  const tokens = (usage.prompt_tokens || 0) + (usage.completion_tokens || 0);
  const verdict = score.value === undefined ? h("span", { class: "pill error" }, "no score")
    : typeof score.passed === "boolean" && h("span", { class: "pill " + (score.passed ? "passed" : "failed") }, score.passed ? "passed" : "missed");
  const asked = score.judge && [score.judge, `${score.votes || 1} vote${(score.votes || 1) === 1 ? "" : "s"}`,
    score.cached ? "stored reply" : `${shown(score.duration || 0, 2)} s`, tokens ? `${tokens} tokens` : "", usage.cost !== undefined ? dollars(usage.cost) : ""].filter(Boolean).join(", ");
  return h("div", { class: "score" },
    h("div", { class: "head" }, h("h3", {}, score.metric), h("strong", {}, shown(score.value)), score.threshold && h("span", { class: "dim" }, "wanted " + score.threshold),
      verdict, score.band && pill(score.band), (row.tests || []).length > 1 && h("span", { class: "dim" }, score.test)),
    score.error && h("p", { class: "noscore" }, score.error.message),
    facts([["judge", asked || undefined], ["embedder", score.embedder], ["judge says", score.error_message], ["reason", score.reason !== score.error_message ? score.reason : undefined],
      ...opinions(score.details || {})]),
    typeof score.passed === "boolean" && score.value !== undefined && marking(row, scorePlace, null, `${score.metric} ${shown(score.value)}`),
    evidenceList(row, score, scorePlace),
    repliesBlock(row, score.replies, scorePlace),
    score.details && h("details", {}, h("summary", {}, "details"), h("pre", {}, JSON.stringify(score.details, null, 1))));
}

function baselineBlock(row) {
  const old = row.baseline;
  if (!old) return false;
  const names = [...new Set([...Object.keys(old.scores || {}), ...(row.scores || []).map((score) => score.metric)])];
  const now = (name) => (scoreOf(row, name) || {}).value;
  return h("section", { class: "card" }, h("h2", {}, "Compared with the baseline"),
    h("div", { class: "pair" },
      h("div", {}, h("h3", {}, "Baseline's answer"), h("p", { class: "text" }, old.answer === undefined ? "–" : old.answer)),
      h("div", {}, h("h3", {}, "This answer"), h("p", { class: "text" }, row.answer === undefined ? "–" : row.answer))),
    h("table", {}, h("thead", {}, h("tr", {}, ["metric", "baseline", "now", "difference"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, names.map((name) => {
        const before = (old.scores || {})[name], after = now(name);
        const change = before !== undefined && after !== undefined ? after - before : undefined;
        return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, shown(before)), h("td", {}, shown(after)),
          h("td", {}, change === undefined ? "–" : (change > 0 ? "+" : "") + shown(change)));
      }))));
}

function drawQuestion(place) {
  const row = ROWS[place];
  const list = TABLE.found.includes(row) ? TABLE.found : ROWS;
  const at = list.indexOf(row);
  const claims = claimsOf(row);
  const step = (by, text, id) => h("button", { type: "button", class: "plain", id, disabled: list[at + by] === undefined, onclick: () => { location.hash = "q=" + list[at + by].place; } }, text);
  const where = row.file && (row.line ? `${row.file}:${row.line}` : row.file);
  const cost = (row.scores || []).reduce((sum, score) => sum + ((score.usage || {}).cost || 0), 0);
  const taken = (row.scores || []).reduce((sum, score) => sum + (score.duration || 0), 0);
  fill(byId("question"),
    h("nav", { class: "pager noprint", "aria-label": "Questions" }, h("a", { href: "#questions", id: "back" }, "← All questions"),
      step(-1, "Previous (p)", "previous"), step(1, "Next (n)", "next"), h("span", { class: "dim" }, `${at + 1} of ${list.length}`)),
    h("section", { class: "card" },
      h("div", { class: "topline" }, pill(row.outcome), h("h2", { id: "title", tabindex: "-1", class: "text" }, row.question)),
      facts([["id", row.id], ["system", row.system], ["written in", where], ["tags", (row.tags || []).join(", ")], ["language", row.lang], ["session", row.session], ["cluster", row.cluster],
        ["must pass", row.must_pass ? "yes" : ""], ["should abstain", row.should_abstain ? "yes" : ""],
        ["answer took", row.latency === undefined ? "" : `${shown(row.latency, 2)} s${row.cached ? " (stored)" : ""}`],
        ["first token after", row.first_token === undefined ? "" : `${shown(row.first_token, 2)} s`],
        ["asked at a time", row.at_once > 1 ? row.at_once : ""],
        ["trace", row.trace_id && (DATA.trace_url ? h("a", { href: DATA.trace_url.replace("{trace_id}", row.trace_id), rel: "noreferrer" }, row.trace_id) : row.trace_id)],
        ["judge and embedder took", taken ? `${shown(taken, 2)} s` : ""], ["judge cost", cost ? dollars(cost) : ""]]),
      (row.tests || []).map((test) => h("p", {}, pill(test.outcome), " ", test.test, test.message && h("span", { class: "text" }, ": " + test.message)))),
    h("section", { class: "card" }, h("div", { class: "pair" },
      h("div", {}, h("h2", {}, "Answer"), row.answer === undefined ? h("p", { class: "dim" }, "none") : h("div", { class: "text" }, row.answer === "" ? "(empty)" : marked(row.answer, claims))),
      row.reference !== undefined && h("div", {}, h("h2", {}, "Reference"), h("div", { class: "text" }, row.reference)))),
    baselineBlock(row),
    h("section", { class: "card" }, h("h2", {}, "Scores"), (row.scores || []).length ? row.scores.map((score, index) => scoreBlock(row, score, index)) : h("p", { class: "dim" }, "none")),
    matrix(claims, (row.contexts || []).length),
    h("section", { class: "card" }, h("h2", {}, "Chunks"),
      claims.some((claim) => claim.chunk !== undefined) && h("p", { class: "dim" }, "Marked: the sentence that shares most words with a claim whose verdict rests on the chunk."), chunkList(row, claims)),
    row.reference_contexts && h("section", { class: "card" }, h("h2", {}, "Reference chunks"), row.reference_contexts.map((text) => h("article", { class: "chunk text" }, DATA.texts[text]))));
}

let listScroll = 0;
function route() {
  const match = /^#q=(\d+)$/.exec(location.hash);
  const row = match && ROWS[Number(match[1])];
  const was = !byId("overview").hidden;
  const cause = /^#cause=(\d+)$/.exec(location.hash);
  if (row && was) listScroll = window.scrollY;
  byId("overview").hidden = Boolean(row);
  byId("question").hidden = !row;
  if (row) {
    drawQuestion(row.place);
    window.scrollTo(0, 0);
    byId("title").focus({ preventScroll: true });
    document.title = row.question.slice(0, 80) + " · RAG quality";
  } else if (cause && DATA.causes[Number(cause[1])] !== undefined) {
    byId("question").replaceChildren();
    document.title = DATA.title;
    filterBy({ cause: cause[1] });
    byId("questions").scrollIntoView({ block: "start" });
    byId("questions").focus({ preventScroll: true });
  } else if (!was) {
    byId("question").replaceChildren();
    document.title = DATA.title;
    window.scrollTo(0, listScroll);
    byId("questions").focus({ preventScroll: true });
  }
}

window.addEventListener("hashchange", route);
document.addEventListener("keydown", (event) => {
  if (byId("question").hidden || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const id = { n: "next", p: "previous", Escape: "back" }[event.key];
  if (id) byId(id).click();
});
