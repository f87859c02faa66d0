// Keeps a list up to date, every few seconds, while the page is visible. It can be paused.
"use strict";

const EVERY = 3000;
const button = document.querySelector("[data-live]");
let isPaused = false;

// Not for a tab in the background, nor over an opened row or selected text.
const refresh = () => {
  const list = document.getElementById("list");
  const isRead = list && (list.querySelector("details[open]") || !getSelection().isCollapsed);
  if (!list || isPaused || document.hidden || isRead) return;
  htmx.ajax("GET", location.href, { source: list, target: list, select: "#list", swap: "outerHTML" });
};

button.hidden = false;
button.addEventListener("click", () => {
  isPaused = !isPaused;
  button.setAttribute("aria-pressed", String(isPaused));
});
document.addEventListener("visibilitychange", refresh);
setInterval(refresh, EVERY);
