"use strict";
// Which sentence of a text a claim speaks of: the one that shares most of its words. A reading aid: the
// judge says which chunk a claim rests on, not where in it.
const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const SENTENCES = new Intl.Segmenter(undefined, { granularity: "sentence" });

function wordsOf(text) {
  const found = new Set();
  for (const part of WORDS.segment(folded(text))) if (part.isWordLike) found.add(part.segment);
  return found;
}

function sentencesOf(text) {
  return [...SENTENCES.segment(text)].map((part) => ({ start: part.index, text: part.segment, words: wordsOf(part.segment) }));
}

// The place of the best sentence, or -1 where none shares a third of the claim's words.
function bestSentence(claim, sentences) {
  const wanted = wordsOf(claim);
  if (!wanted.size) return -1;
  let best = -1, most = wanted.size / 3;
  sentences.forEach((sentence, place) => {
    let shared = 0;
    for (const word of wanted) if (sentence.words.has(word)) shared += 1;
    if (shared > most) { best = place; most = shared; }
  });
  return best;
}

// The text with a mark around each sentence that a claim of `claims` ({number, text, ok}) speaks of.
function marked(text, claims) {
  const sentences = sentencesOf(text);
  const about = sentences.map(() => []);
  for (const claim of claims) {
    const place = bestSentence(claim.text, sentences);
    if (place >= 0) about[place].push(claim);
  }
  return sentences.map((sentence, place) => {
    const own = about[place];
    if (!own.length) return document.createTextNode(sentence.text);
    const trimmed = sentence.text.trimEnd();
    const bad = own.some((claim) => claim.ok === false);
    const numbers = [...new Set(own.map((claim) => claim.number))].join(",");
    const mark = h("mark", { class: bad ? "no" : "yes", title: own.map((claim) => `${claim.ok ? "✓" : "✗"} ${claim.text}`).join("\n") },
      trimmed, h("sup", {}, h("span", { class: "sr" }, bad ? " fails claim " : " supports claim "), numbers));
    return h("span", {}, mark, sentence.text.slice(trimmed.length));
  });
}
