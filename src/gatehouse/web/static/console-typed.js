// Restores what was typed into a form when a fresh sign-in interrupted it; it is sent only by pressing its button.
//
// A form marked data-typed is remembered as it is sent, for this tab and until the next page of the console, which
// forgets it whatever becomes of it. It is filled in again only where the server says that it was not sent, for the
// same person, while it is about the same version of the same thing. Hidden fields, passwords, files and what looks
// like a private key are never remembered.
"use strict";

const TYPED = "typed";
const LIFETIME = 10 * 60 * 1000; // milliseconds; as long as the server waits for a proof (PROVING)
const UNTOLD = ["hidden", "password", "file", "submit", "button"];
const PRIVATE = /PRIVATE KEY|"[dk]"\s*:/; // PEM, and the private members of a JWK (RFC 7518 §6)

const { person, notSent } = document.body.dataset;
const fieldsOf = (form) =>
  [...form.elements].filter((field) => field.name && !UNTOLD.includes(field.type));
const isChosen = (field) => field.type === "checkbox" || field.type === "radio";
const valueOf = (field) => (isChosen(field) ? field.checked : field.value);
const choiceOf = (field) => field.dataset.value ?? null; // the ID that a combobox sends, where it shows a name

const told = (form) => ({
  person,
  action: new URL(form.action).pathname,
  version: form.elements.version?.value ?? "",
  names: fieldsOf(form).map((field) => field.name),
});
const alike = (one, other) => JSON.stringify(one) === JSON.stringify(other);

document.addEventListener("submit", ({ target: form }) => {
  if (!form.matches("form[data-typed]")) return;
  const values = fieldsOf(form).map((field) => (PRIVATE.test(field.value) ? null : valueOf(field)));
  const choices = fieldsOf(form).map(choiceOf);
  sessionStorage.setItem(TYPED, JSON.stringify({ at: Date.now(), told: told(form), values, choices }));
});

const fill = (field, value, choice) => {
  if (value === null || (valueOf(field) === value && choiceOf(field) === choice)) return;
  if (isChosen(field)) field.checked = value;
  else field.value = value;
  delete field.dataset.label; // of what the page chose
  field.closest(".combobox")?.querySelector(".chosen")?.remove();
  if (choice !== null) field.dataset.value = choice;
  const around = field.closest("details");
  if (around) around.open = true;
  field.dispatchEvent(new Event("change", { bubbles: true }));
};

const kept = JSON.parse(sessionStorage.getItem(TYPED));
sessionStorage.removeItem(TYPED);
if (kept && notSent !== undefined && Date.now() - kept.at < LIFETIME) {
  const form = [...document.querySelectorAll("form[data-typed]")].find((one) => alike(told(one), kept.told));
  if (form) {
    fieldsOf(form).forEach((field, place) => fill(field, kept.values[place], kept.choices[place]));
    document.querySelector("[data-typed-again]").textContent = notSent;
    form.querySelector("[type=submit]").focus();
  }
}
