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

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue; // only a secure page has one
  offer(button, async () => {
    await navigator.clipboard.writeText(linesOf(button.dataset.copy));
    button.textContent = button.dataset.done;
  });
}

for (const button of document.querySelectorAll("[data-download]")) {
  offer(button, () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${linesOf(button.dataset.download)}\n`], { type: "text/plain" }));
    link.download = button.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

for (const button of document.querySelectorAll("[data-print]")) {
  offer(button, () => window.print());
}

// The page's language, in the regional form the reader has set: 9:30 PM is not everybody's English.
const language = document.documentElement.lang;
const region = navigator.languages.find((tag) => tag.split("-")[0] === language) || language;
const local = new Intl.DateTimeFormat(region, { dateStyle: "long", timeStyle: "short" });
for (const time of document.querySelectorAll("time[data-exact]")) {
  time.textContent = local.format(new Date(time.dateTime));
}
