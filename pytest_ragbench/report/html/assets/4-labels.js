"use strict";
// What a person says of the judge's verdicts; saved as docs/calibration.md describes.
const KEPT = "ragbench-labels-" + DATA.run.id;
let LABELS = new Map();
let unsaved = false;
let kept = false;

try {
  LABELS = new Map(JSON.parse(localStorage.getItem(KEPT) || "[]"));
} catch { /* no storage for this page, or an entry of something else: start with none */ }

function keep() {
  unsaved = true;
  try {
    localStorage.setItem(KEPT, JSON.stringify([...LABELS]));
    kept = true;
  } catch { /* then leaving the page asks first */ }
  drawBar();
}

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

function drawBar() {
  const count = [...LABELS.values()].filter((entry) => entry.label).length;
  const bar = byId("savebar");
  bar.hidden = count === 0;
  bar.replaceChildren(
    h("button", { type: "button", class: "plain main", id: "save", onclick: save }, `Save labels (${count})`),
    h("span", { class: "dim" }, unsaved ? (kept ? "kept in this browser, not in a file yet" : "not saved yet") : "for ragbench calibrate"),
    h("button", { type: "button", class: "plain", onclick: () => {
      if (!window.confirm(`Forget all ${count} marks?`)) return;
      LABELS.clear(); keep(); unsaved = false; route();
    } }, "Forget all"));
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
      keep();
      draw();
      [...box.querySelectorAll("button")].find((other) => other.textContent === text).focus();
    } }, text);
    const remark = h("input", { type: "text", placeholder: "Remark", "aria-label": "Remark on: " + name, value: now.remark, onchange: (event) => {
      LABELS.set(key, { ...entry(), remark: event.target.value, marked: new Date().toISOString() });
      keep();
    } });
    box.replaceChildren(button("right", "Right"), button("wrong", "Wrong"), ...(now.label ? [remark] : []));
  };
  draw();
  return box;
}

window.addEventListener("beforeunload", (event) => { if (unsaved && !kept) event.preventDefault(); });
