"use strict";
// What a person says of the judge's verdicts; saved as docs/calibration.md describes.
const KEPT = "ragbench-labels-" + DATA.run.id;
// Set where `ragbench view` serves the page: it keeps the labels in a file, else the browser does until they are saved.
const SERVED = DATA.labels;
let LABELS = new Map();
let unsaved = false;
let kept = false;

const labelKey = (place, scorePlace, evidence) => `${place}/${scorePlace}/${evidence === null ? "" : evidence}`;

function labelLine(key, entry) {
  const [place, scorePlace, evidence] = key.split("/");
  const row = ROWS[Number(place)];
  const score = row && (row.scores || [])[Number(scorePlace)];
  if (!score) return undefined;
  const finding = evidence === "" ? null : (score.evidence || [])[Number(evidence)];
  const verdict = finding ? finding.ok : score.passed;
  const none = (value) => (value === undefined ? null : value);
  return {
    question_id: none(row.id), metric: score.metric, claim: finding ? finding.text : null, verdict,
    label: entry.label, human_verdict: entry.label === "right" ? verdict : !verdict, remark: entry.remark || "",
    question: row.question, answer: none(row.answer), contexts: row.contexts ? chunksOf(row) : null,
    reference: none(row.reference), evidence: evidence === "" ? null : Number(evidence),
    chunk: finding ? none(finding.chunk) : null, value: none(score.value), threshold: none(score.threshold),
    judge: none(score.judge), lang: none(row.lang), tags: row.tags || [], test: score.test, run: DATA.run.id, marked: entry.marked,
  };
}

function save() {
  const lines = [...LABELS].filter(([, entry]) => entry.label).map(([key, entry]) => labelLine(key, entry)).filter(Boolean);
  // Some readers take these, which JSON may hold as they are, for the end of a line.
  const told = (line) => JSON.stringify(line).replace(/[\u0085\u2028\u2029]/g, (letter) => "\\u" + letter.charCodeAt(0).toString(16).padStart(4, "0"));
  const blob = new Blob(lines.map((line) => told(line) + "\n"), { type: "application/jsonl" });
  const link = h("a", { href: URL.createObjectURL(blob), download: `labels-${DATA.run.id.slice(0, 8)}.jsonl` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  unsaved = false;
  say(`${lines.length} labels saved`);
  drawBar();
}

// The label that a line of the file is about; undefined where the run has no such verdict.
function keyOf(line) {
  const none = (value) => (value === undefined ? null : value);
  const keys = ROWS.flatMap((row, place) => none(row.id) !== line.question_id || row.question !== line.question ? [] : (row.scores || []).flatMap((score, scorePlace) => {
    const finding = line.claim === null ? undefined : (score.evidence || [])[line.evidence];
    const same = score.metric === line.metric && score.test === line.test && (line.claim === null || (finding && finding.text === line.claim));
    return same ? [{ key: labelKey(place, scorePlace, line.evidence), near: none(score.threshold) === none(line.threshold) }] : [];
  }));
  return (keys.find((found) => found.near) || keys[0] || {}).key;
}

// What the server has not taken yet; one request at a time, so that the last mark of a verdict is the one that stays.
const waiting = new Set();
let problem = "";
let sending = Promise.resolve();

function send() {
  sending = sending.then(async () => {
    const sent = [...waiting];
    if (!sent.length) return;
    waiting.clear();
    const lines = sent.map((key) => labelLine(key, LABELS.get(key) || { label: "" })).filter(Boolean);
    try {
      const reply = await fetch(SERVED.url, {
        method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ marked: lines.filter((line) => line.label), cleared: lines.filter((line) => !line.label).map(({ question, answer, contexts, reference, ...about }) => about) }),
      });
      if (!reply.ok) throw new Error((await reply.json()).error);
      problem = "";
    } catch (error) {
      sent.forEach((key) => waiting.add(key));
      problem = error instanceof TypeError ? "ragbench view does not answer" : error.message;
    }
    unsaved = waiting.size > 0;
    say(unsaved ? "not saved: " + problem : "label saved");
    drawBar();
  });
}

function keep(keys) {
  unsaved = true;
  if (SERVED) {
    keys.forEach((key) => waiting.add(key));
    send();
  } else {
    try {
      localStorage.setItem(KEPT, JSON.stringify([...LABELS]));
      kept = true;
    } catch { /* then leaving the page asks first */ }
  }
  drawBar();
}

function drawBar() {
  const count = [...LABELS.values()].filter((entry) => entry.label).length;
  const bar = byId("savebar");
  const forget = h("button", { type: "button", class: "plain", onclick: () => {
    if (!window.confirm(`Forget all ${count} marks?`)) return;
    const keys = [...LABELS.keys()];
    LABELS.clear(); keep(keys); unsaved = Boolean(SERVED); route();
  } }, "Forget all");
  const download = h("button", { type: "button", class: "plain main", id: "save", onclick: save }, `Save labels (${count})`);
  bar.hidden = count === 0 && !problem;
  if (SERVED) {
    bar.replaceChildren(...[
      problem ? h("span", { class: "miss" }, "Not saved: " + problem) : h("span", {}, `${count} label${count === 1 ? "" : "s"} of this run in ${SERVED.file}`),
      problem ? [h("button", { type: "button", class: "plain main", onclick: send }, "Try again"), download] : forget].flat());
    return;
  }
  bar.replaceChildren(
    download,
    h("span", { class: "dim" }, unsaved ? (kept ? "kept in this browser, not in a file yet" : "not saved yet") : "for ragbench calibrate"), forget);
}

// Buttons and a remark for one verdict; `name` says which one to a screen reader.
function marking(row, scorePlace, evidence, name) {
  const key = labelKey(row.place, scorePlace, evidence);
  const entry = () => LABELS.get(key) || { label: "", remark: "" };
  const box = h("div", { class: "marking", role: "group", "aria-label": "Mark the verdict: " + name });
  const draw = () => {
    const now = entry();
    const button = (label, text) => h("button", { type: "button", class: "plain", "aria-pressed": String(now.label === label), onclick: () => {
      const next = now.label === label ? "" : label;
      if (next === "" && !now.remark) LABELS.delete(key);
      else LABELS.set(key, { ...now, label: next, marked: new Date().toISOString() });
      keep([key]);
      draw();
      [...box.querySelectorAll("button")].find((other) => other.textContent === text).focus();
    } }, text);
    const remark = h("input", { type: "text", placeholder: "Remark", "aria-label": "Remark on: " + name, value: now.remark, onchange: (event) => {
      LABELS.set(key, { ...entry(), remark: event.target.value, marked: new Date().toISOString() });
      keep([key]);
    } });
    box.replaceChildren(button("right", "Right"), button("wrong", "Wrong"), ...(now.label ? [remark] : []));
  };
  draw();
  return box;
}

try {
  LABELS = new Map(SERVED
    ? SERVED.marked.map((line) => [keyOf(line), { label: line.human_verdict === line.verdict ? "right" : "wrong", remark: line.remark || "", marked: line.marked }]).filter(([key]) => key !== undefined)
    : JSON.parse(localStorage.getItem(KEPT) || "[]"));
} catch { /* no storage for this page, or an entry of something else: start with none */ }

window.addEventListener("beforeunload", (event) => { if (unsaved && !kept) event.preventDefault(); });
