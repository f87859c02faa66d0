// Small comforts: copy, save, print, and times in the reader's own zone. The pages work without them.
"use strict";

const linesOf = (id) => {
  const place = document.getElementById(id);
  const items = place.querySelectorAll("li");
  const texts = items.length ? [...items].map((item) => item.textContent.trim()) : [place.textContent.trim()];
  return texts.join("\n");
};

const offer = (button, act) => {
  button.hidden = false;
  button.addEventListener("click", act);
};

const copying = (button) => {
  if (!navigator.clipboard) return; // only a secure page has one
  offer(button, async () => {
    await navigator.clipboard.writeText(linesOf(button.dataset.copy));
    button.textContent = button.dataset.done;
  });
};

const saving = (button) => {
  offer(button, () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${linesOf(button.dataset.download)}\n`], { type: "text/plain" }));
    link.download = button.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
};

// The page's language, in the regional form the reader has set: 9:30 PM is not everybody's English.
const language = document.documentElement.lang;
const region = navigator.languages.find((tag) => tag.split("-")[0] === language) || language;
const local = new Intl.DateTimeFormat(region, { dateStyle: "long", timeStyle: "short" });
const localDay = new Intl.DateTimeFormat(region, { dateStyle: "long" });
globalThis.localDay = localDay; // for console-activity.js
// An account may have another time zone than this browser: then the times stay as they are.
const shown = document.documentElement.dataset.zone;
const inThisZone = !shown || shown === local.resolvedOptions().timeZone;

// Also for what htmx has put into the page since: a button that is still hidden was not offered before.
const enhance = () => {
  document.querySelectorAll("[data-copy][hidden]").forEach(copying);
  document.querySelectorAll("[data-download][hidden]").forEach(saving);
  for (const button of document.querySelectorAll("[data-print][hidden]")) offer(button, () => window.print());
  if (!inThisZone) return;
  for (const time of document.querySelectorAll("time[data-exact]")) {
    time.textContent = local.format(new Date(time.dateTime));
  }
  for (const time of document.querySelectorAll("time[data-day]")) {
    time.textContent = localDay.format(new Date(time.dateTime));
  }
  for (const time of document.querySelectorAll("time[data-exact-title]")) {
    time.title = local.format(new Date(time.dateTime));
  }
};
document.addEventListener("htmx:afterSwap", enhance);
enhance();
