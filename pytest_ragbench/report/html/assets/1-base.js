"use strict";
// Everything that comes from the run is put in as text; nothing here writes markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const ROWS = DATA.questions;
const byId = (id) => document.getElementById(id);

function h(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
  return node;
}

const fill = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter((child) => child));
const shown = (value, digits = 3) => (value === undefined || value === null ? "–" : value.toFixed(digits));
// As money.py writes it.
function dollars(cost) {
  if (!cost) return "$0";
  if (cost >= 1) return "$" + cost.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, ",");
  const digits = cost >= 0.01 ? 4 : Math.min(100, Math.max(6, 1 - Math.floor(Math.log10(cost))));
  const [whole, part] = cost.toFixed(digits).split(".");
  return `$${whole}.${part.replace(/0+$/, "").padEnd(2, "0")}`;
}
const pill = (name) => h("span", { class: "pill " + name }, name);
const say = (text) => { byId("said").textContent = text; };
const folded = (text) => text.normalize("NFKC").toLocaleLowerCase();
const chunksOf = (row) => (row.contexts || []).map((place) => DATA.texts[place]);

function option(value, text, chosen) {
  return h("option", { value, selected: value === chosen }, text === undefined ? value : text);
}
