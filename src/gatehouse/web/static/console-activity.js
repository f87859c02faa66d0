// Puts records under the day they have in the browser's time zone; the page grouped them by UTC.
"use strict";

// `localDay` is of enhance.js.
const DAY = 24 * 3600 * 1000;

const headingOf = (day, words) => {
  const row = document.createElement("li");
  const heading = document.createElement("h2");
  row.className = "day";
  if (day === localDay.format(Date.now())) heading.textContent = words.today;
  else if (day === localDay.format(Date.now() - DAY)) heading.textContent = words.yesterday;
  else heading.textContent = day;
  row.append(heading);
  return row;
};

const regroup = (list) => {
  list.querySelectorAll(".day").forEach((row) => row.remove());
  let last = "";
  for (const row of [...list.children]) {
    const day = localDay.format(new Date(row.querySelector(".when time").dateTime));
    if (day !== last) row.before(headingOf(day, list.dataset));
    last = day;
  }
};

const regroupAll = () => document.querySelectorAll("[data-days]").forEach(regroup);
document.addEventListener("htmx:afterSwap", regroupAll);
regroupAll();
