"use strict";
// What the judge sent, word for word: packed, and unpacked a hundred questions at a time when one is looked at.
const TOGETHER = 100;
const PACKS = JSON.parse(byId("replies").textContent);
const unpacked = new Map();

async function unpack(pack) {
  const bytes = Uint8Array.from(atob(pack), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

async function repliesOf(place, scorePlace) {
  const number = Math.floor(place / TOGETHER);
  if (!unpacked.has(number)) unpacked.set(number, unpack(PACKS[number]));
  return (await unpacked.get(number))[place % TOGETHER][scorePlace];
}

function replyBlock(reply) {
  const about = [reply.task, reply.judge, reply.vote && `vote ${reply.vote}`, reply.cached && "stored"].filter(Boolean).join(" · ");
  return h("figure", { class: "reply" }, about && h("figcaption", { class: "dim" }, about), h("pre", {}, reply.text),
    reply.cut && h("p", { class: "dim" }, `${reply.cut} more characters are not in the report (report_replies)`));
}

// `count` is known without unpacking.
function repliesBlock(row, count, scorePlace) {
  if (!count) return false;
  const place = h("div", { class: "replies" });
  const open = async (event) => {
    if (!event.target.open || place.hasChildNodes()) return;
    try {
      place.replaceChildren(...(await repliesOf(row.place, scorePlace)).map(replyBlock));
    } catch (error) {
      place.replaceChildren(h("p", { class: "noscore" }, `This browser can't unpack them: ${error.message}`));
    }
  };
  return h("details", { ontoggle: open }, h("summary", {}, `judge's ${count === 1 ? "reply" : `replies (${count})`}`), place);
}

// Votes, and what each member of a panel said, where there are several.
function opinions(details) {
  const numbers = (values) => values.map((value) => shown(value)).join(", ");
  const panel = Object.entries(details.panel || {}).map(([name, value]) => `${name} ${shown(value)}`);
  const failed = Object.entries(details.panel_failed || {}).map(([name, why]) => `${name}: ${why}`);
  const agreed = typeof details.self_agreement === "number" ? `; self-agreement ${shown(details.self_agreement, 2)}` : "";
  return [["votes", Array.isArray(details.votes) ? numbers(details.votes) + agreed : undefined],
    ["votes that failed", Array.isArray(details.votes_failed) ? details.votes_failed.join("; ") : undefined],
    ["panel", panel.join(", ") || undefined], ["left out of the panel", failed.join("; ") || undefined],
    ["disagreement", details.disagreement]];
}
