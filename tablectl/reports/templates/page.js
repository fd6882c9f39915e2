"use strict";
// Only comfort: without it everything is there.
const form = document.querySelector("form.filter");
const articles = [...document.querySelectorAll("article[data-state]")];
const folds = [...document.querySelectorAll("article details")];
const rows = new Map([...document.querySelectorAll("tr[data-for]")].map((row) => [row.dataset.for, row]));

const texts = new Map();

function contains(article, text) {
  if (!texts.has(article)) texts.set(article, article.textContent.toLowerCase());
  return texts.get(article).includes(text);
}

function unfold(open, among) {
  for (const each of among) each.open = open;
}

function filter() {
  const text = form.elements.text.value.trim().toLowerCase();
  const state = form.elements.state.value;
  let shown = 0;
  for (const each of articles) {
    const fits = (!state || each.dataset.state === state) && (!text || contains(each, text));
    each.hidden = !fits;
    if (rows.has(each.id)) rows.get(each.id).hidden = !fits;
    shown += fits ? 1 : 0;
  }
  form.querySelector("output").textContent =
    text || state ? `${shown} of ${articles.length} tables` : `${articles.length} tables`;
}

if (form) {
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.elements.open.addEventListener("click", () => unfold(true, folds));
  form.elements.close.addEventListener("click", () => unfold(false, folds));
  filter();
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
