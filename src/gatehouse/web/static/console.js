// Small comforts of the console. What is on a page is for htmx or plain forms; this is for keys and menus.
"use strict";

// The sidebar shows icons only where that was chosen; the server reads the cookie, so that pages open as they stay.
const collapse = document.querySelector("[data-collapse]");
collapse.hidden = false;
collapse.addEventListener("click", () => {
  const collapsed = document.body.classList.toggle("collapsed");
  collapse.setAttribute("aria-expanded", String(!collapsed));
  for (const entry of document.querySelectorAll(".sheet nav .entry")) entry.title = collapsed ? entry.textContent.trim() : "";
  document.cookie = `gh_sidebar=${collapsed ? "collapsed" : "open"}; Path=/console; Max-Age=31536000; SameSite=Lax`;
});

// Days end, and times are shown, where the reader is: in the account's time zone, else in this one.
const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `gh_zone=${zone}; Path=/console; Max-Age=31536000; SameSite=Lax`;

// A picture that is chosen is uploaded.
document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-uploads]") && target.files.length) target.form.requestSubmit();
});

// A day that is typed is chosen.
document.addEventListener("input", (event) => {
  const choice = event.target.closest("[data-ends]")?.querySelector('[value="date"]');
  if (choice && event.target.type === "date") choice.checked = true;
});

// A toast stays until it is read: a few seconds, longer under the pointer or with the focus, or with something to do.
const TOAST_SECONDS = 6;
const TOAST_SECONDS_WITH_FORM = 20;
for (const toast of document.querySelectorAll("[data-toast]")) {
  const dismiss = toast.querySelector("[data-dismiss]");
  dismiss.hidden = false;
  dismiss.addEventListener("click", () => toast.remove());
  const leave = () => (toast.matches(":hover, :focus-within") ? setTimeout(leave, 1000) : toast.remove());
  setTimeout(leave, (toast.querySelector("form") ? TOAST_SECONDS_WITH_FORM : TOAST_SECONDS) * 1000);
}

// A row opens what its name links to; links, buttons and selected text in it stay what they are.
const rowLink = (row) => row.querySelector(":scope > th[scope=row] a[href]");
const openable = () => {
  for (const row of document.querySelectorAll(".stacks tbody tr")) if (rowLink(row)) row.dataset.opens = "";
};
document.addEventListener("htmx:afterSettle", openable);
openable();
document.addEventListener("click", (event) => {
  const row = event.target.closest("tr[data-opens]");
  if (!row || event.target.closest("a, button, input, label, select, summary, form") || String(getSelection())) return;
  if (event.ctrlKey || event.metaKey) window.open(rowLink(row).href);
  else rowLink(row).click();
});

// One box selects all rows of the page.
const showSelectAll = () => {
  for (const label of document.querySelectorAll(".select-all")) label.hidden = false;
};
document.addEventListener("htmx:afterSettle", showSelectAll);
showSelectAll();
document.addEventListener("change", ({ target }) => {
  for (const all of document.querySelectorAll("[data-select-all]")) {
    const rows = [...document.querySelectorAll(`input[type=checkbox][form="${all.form.id}"]`)];
    if (target === all) for (const row of rows) row.checked = all.checked;
    const selected = rows.filter((row) => row.checked).length;
    all.checked = selected === rows.length && selected > 0;
    all.indeterminate = selected > 0 && selected < rows.length;
  }
});

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
const SIDEWAYS = ".wide, .grid, .tabs, .sections";
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
for (const tab of document.querySelectorAll(":is(.tabs, .sections) [aria-current]")) {
  const row = tab.closest(".tabs, .sections");
  row.scrollLeft = tab.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
}
measure();

// What is typed beside a choice has an example of its own for each.
document.addEventListener("change", (event) => {
  const example = event.target.selectedOptions?.[0]?.dataset.example;
  const field = event.target.closest("li")?.querySelector("input[placeholder]");
  if (example !== undefined && field) field.placeholder = example;
});
