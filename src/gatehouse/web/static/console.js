// Small comforts of the console. What is on a page is for htmx or plain forms; this is for keys and menus.
"use strict";

// On a phone the menu is shut until it is asked for.
const menu = document.querySelector(".side .menu");
const wide = window.matchMedia("(min-width: 60rem)");
const fit = () => {
  menu.open = wide.matches;
};
wide.addEventListener("change", fit);
fit();

// "/" goes to the search of the page.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  const search = document.querySelector("input[type=search]");
  if (event.key !== "/" || typing || !search || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  search.focus();
  search.select();
});

// A search asks anew: what the page's own address asked for does not go with it (htmx would send it twice).
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (detail.elt.matches("form.search")) detail.path = window.location.pathname;
});

// What is wider than its place fades where it goes on; a table is reached and moved by keys as well.
const SIDEWAYS = ".wide, .grid, .tabs";
const measured = (box) => {
  const hidden = box.scrollWidth - box.clientWidth;
  if (hidden > 0 && box.matches(".wide")) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
  box.classList.toggle("more-before", box.scrollLeft > 1);
  box.classList.toggle("more-after", box.scrollLeft < hidden - 1);
};
const measure = () => document.querySelectorAll(SIDEWAYS).forEach(measured);
window.addEventListener("resize", measure);
document.addEventListener("toggle", measure, true);
document.addEventListener("htmx:afterSettle", measure);
document.addEventListener("scroll", ({ target }) => target.matches?.(SIDEWAYS) && measured(target), true);

// The tab one is on is in sight.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  const row = tab.closest(".tabs");
  row.scrollLeft = tab.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
}
measure();

// What is typed beside a choice has an example of its own for each.
document.addEventListener("change", (event) => {
  const example = event.target.selectedOptions?.[0]?.dataset.example;
  const field = event.target.closest("li")?.querySelector("input[placeholder]");
  if (example !== undefined && field) field.placeholder = example;
});
