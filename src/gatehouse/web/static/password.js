// Passwords are typed once: a button shows what was typed, and a hint tells of Caps Lock. The forms work without it.
"use strict";

// Who forgot the password does not type the address again.
const forgotten = document.querySelector("a[data-forgot]");
forgotten?.addEventListener("click", () => {
  const target = new URL(forgotten.href);
  target.searchParams.set("login", document.querySelector("[name=login]").value);
  forgotten.href = target;
});

for (const field of document.querySelectorAll("input[type=password][data-show]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "reveal";
  button.textContent = field.dataset.show;
  button.setAttribute("aria-controls", field.id);
  button.setAttribute("aria-pressed", "false");
  const show = (shown) => {
    field.type = shown ? "text" : "password";
    button.textContent = shown ? field.dataset.hide : field.dataset.show;
    button.setAttribute("aria-pressed", String(shown));
  };
  button.addEventListener("click", () => show(field.type === "password"));
  field.after(button);
  field.form.addEventListener("submit", () => show(false)); // else the browser would remember it as plain text

  const hint = document.createElement("p");
  hint.className = "hint";
  hint.setAttribute("role", "status");
  field.parentElement.after(hint);
  const watch = (event) => {
    hint.textContent = event.getModifierState?.("CapsLock") ? field.dataset.caps : "";
  };
  field.addEventListener("keydown", watch);
  field.addEventListener("keyup", watch);
  field.addEventListener("blur", () => {
    hint.textContent = "";
  });
}
