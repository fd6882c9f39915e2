"use strict";
// Only comfort: without it everything is there.
const form = document.querySelector("form.filter");
const articles = [...document.querySelectorAll("article[data-state]")];
const folds = [...document.querySelectorAll("article details")];
const rows = new Map([...document.querySelectorAll("tr[data-for]")].map((row) => [row.dataset.for, row]));
const plain = articles.length ? [] : [...document.querySelectorAll("table.overview tbody tr")];
const items = articles.length ? articles : plain;

const texts = new Map();

function contains(item, text) {
  if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
  return texts.get(item).includes(text);
}

function unfold(open, among) {
  for (const each of among) each.open = open;
}

function filter() {
  const text = form.elements.text.value.trim().toLowerCase();
  const state = form.elements.state ? form.elements.state.value : "";
  let shown = 0;
  for (const each of items) {
    const fits = (!state || each.dataset.state === state) && (!text || contains(each, text));
    each.hidden = !fits;
    if (rows.has(each.id)) rows.get(each.id).hidden = !fits;
    shown += fits ? 1 : 0;
  }
  const noun = articles.length ? "groups" : "rows";
  form.querySelector("output").textContent =
    text || state ? `${shown} of ${items.length} ${noun}` : `${items.length} ${noun}`;
}

if (form) {
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.elements.open.addEventListener("click", () => unfold(true, folds));
  form.elements.close.addEventListener("click", () => unfold(false, folds));
  for (const each of [form.elements.open, form.elements.close]) each.hidden = !folds.length;
  filter();
}

function compare(one, other) {
  return one.localeCompare(other, "en", { numeric: true });
}

function sortBy(table, index, head) {
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const each of table.querySelectorAll("th[aria-sort]")) each.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [row.cells[index].textContent.trim(), row]);
  keyed.sort((one, other) => (up ? compare(one[0], other[0]) : compare(other[0], one[0])));
  body.append(...keyed.map((each) => each[1]));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sortBy(table, index, head));
  });
}

async function copy(text) {
  if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

for (const each of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await copy(each.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  each.append(button);
}

function follow() {
  const target = document.getElementById(location.hash.slice(1));
  if (target) unfold(true, target.querySelectorAll(":scope > details"));
}

let closed = [];
addEventListener("hashchange", follow);
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  unfold(true, closed);
});
addEventListener("afterprint", () => unfold(false, closed));
follow();
