// Shows the typed brand in the preview while it is typed; without JavaScript the button does that.
"use strict";

const PAUSE = 250; // milliseconds without a key
const DEFAULT_ACCENT = "#1f66c1"; // as in tokens.css
const FIELDS = ["screen", "theme", "branding__name", "branding__accent", "branding__wordmark"];

const form = document.querySelector("#brand");
const frame = document.querySelector("iframe[name=preview]");
const button = document.querySelector("[data-preview]");
const accent = form.elements.branding__accent;
let timer;

const show = () => {
  const typed = new FormData(form);
  const query = new URLSearchParams(FIELDS.filter((name) => typed.has(name)).map((name) => [name, typed.getAll(name).at(-1)]));
  frame.contentWindow.location.replace(`${button.dataset.preview}?${query}`);
};

for (const field of [...form.elements].filter(({ name }) => FIELDS.includes(name))) {
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, PAUSE);
  });
}
button.hidden = true;

// A color picker beside the text, which may also be empty.
if (accent) {
  const picker = Object.assign(document.createElement("input"), { type: "color", value: DEFAULT_ACCENT });
  const read = () => {
    if (/^#[0-9a-f]{6}$/i.test(accent.value)) picker.value = accent.value.toLowerCase();
  };
  picker.setAttribute("aria-label", form.querySelector(`label[for=${accent.id}]`).textContent.trim());
  picker.addEventListener("input", () => {
    accent.value = picker.value;
    accent.dispatchEvent(new Event("input", { bubbles: true }));
  });
  accent.addEventListener("input", read);
  read();
  accent.after(picker);
}
