// Keeps what changes by itself up to date, every few seconds, while someone looks at it. It can be held still.
"use strict";

const EVERY = 3000;
const button = document.querySelector("[data-live]");
let held = false;

// Nothing is fetched for a tab in the background, nor over what someone has just opened or is choosing from.
const refresh = () => {
  const list = document.getElementById("list");
  const opened = list && list.querySelector("details[open]");
  if (!list || held || document.hidden || opened) return;
  htmx.ajax("GET", location.href, { source: list, target: list, select: "#list", swap: "outerHTML" });
};

button.hidden = false;
button.addEventListener("click", () => {
  held = !held;
  button.setAttribute("aria-pressed", String(held));
});
document.addEventListener("visibilitychange", refresh);
setInterval(refresh, EVERY);
