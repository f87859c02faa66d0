// Puts records under the day they have in the browser's time zone; the page grouped them by UTC.
"use strict";

// `region` is of enhance.js: the language of the page in the reader's regional form.
const dayName = new Intl.DateTimeFormat(region, { dateStyle: "long" });
const DAY = 24 * 3600 * 1000;

const headingOf = (day, words) => {
  const row = document.createElement("li");
  const heading = document.createElement("h2");
  row.className = "day";
  if (day === dayName.format(Date.now())) heading.textContent = words.today;
  else if (day === dayName.format(Date.now() - DAY)) heading.textContent = words.yesterday;
  else heading.textContent = day;
  row.append(heading);
  return row;
};

const regroup = (list) => {
  list.querySelectorAll(".day").forEach((row) => row.remove());
  let last = "";
  for (const row of [...list.children]) {
    const day = dayName.format(new Date(row.querySelector("time").dateTime));
    if (day !== last) row.before(headingOf(day, list.dataset));
    last = day;
  }
};

const regroupAll = () => document.querySelectorAll("[data-days]").forEach(regroup);
document.addEventListener("htmx:afterSwap", regroupAll);
regroupAll();
