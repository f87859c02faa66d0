// Comboboxes (WAI-ARIA combobox with a list popup) on top of plain text fields. The server finds the options, and reads
// names as well as IDs: without this script one types them.
//
// The field shows the name of what was chosen; the form sends its ID. What is typed and not chosen is sent as typed.
"use strict";

const DELAY = 150; // milliseconds after the last key
const plurals = new Intl.PluralRules(document.documentElement.lang);
let made = 0;

const fieldOf = (box) => box.querySelector("input");
const valueOf = (input) => input.dataset.value ?? input.value;

const choose = (input, value, label) => {
  input.value = label;
  input.dataset.value = value;
  input.closest(".combobox").querySelector(".chosen")?.remove();
  input.dispatchEvent(new Event("change", { bubbles: true }));
};

const enhance = (box) => {
  if (box.dataset.ready) return;
  box.dataset.ready = "";
  const input = fieldOf(box);
  const list = document.createElement("ul");
  const status = document.createElement("span");
  list.id = `options-${(made += 1)}`;
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", box.dataset.list);
  status.className = "away";
  status.setAttribute("role", "status");
  input.after(list, status);
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-expanded", "false"], ["aria-controls", list.id]]) {
    input.setAttribute(name, value);
  }
  if (input.dataset.label && input.value) {
    input.dataset.value = input.value;
    input.value = input.dataset.label;
  }

  let active = null;
  let timer = 0;
  let asked = 0;

  const mark = (option) => {
    active?.removeAttribute("aria-selected");
    active = option;
    if (!option) return input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };

  const close = () => {
    clearTimeout(timer);
    asked += 1; // an answer on its way is late
    mark(null);
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  };

  const ask = async () => {
    const number = (asked += 1);
    const url = new URL(box.dataset.combobox, location.href);
    url.searchParams.set("q", "value" in input.dataset ? "" : input.value);
    for (const part of box.dataset.within.split(" ").filter(Boolean)) {
      const [name, as = name] = part.split(":");
      const field = input.form?.elements[name];
      if (field) url.searchParams.set(as, valueOf(field));
    }
    const answer = await fetch(url, { headers: { Accept: "text/html" } }).catch(() => null);
    if (number !== asked || !answer?.ok || answer.redirected) return;
    list.innerHTML = await answer.text();
    const options = [...list.querySelectorAll("[role=option]")];
    options.forEach((option, place) => {
      option.id = `${list.id}-${place}`;
    });
    mark(null);
    list.hidden = list.children.length === 0; // a note is shown without options too
    input.setAttribute("aria-expanded", String(options.length > 0));
    const form = JSON.parse(box.dataset.counted)[plurals.select(options.length)];
    const counted = options.length ? form.replace("{count}", options.length) : box.dataset.none;
    status.textContent = [counted, list.querySelector(".note")?.textContent].filter(Boolean).join(". ");
  };

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, DELAY);
  };

  input.addEventListener("input", () => {
    delete input.dataset.value;
    box.querySelector(".chosen")?.remove();
    soon();
  });
  input.addEventListener("click", () => list.hidden && ask());
  input.addEventListener("focus", () => input.select());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const options = [...list.querySelectorAll("[role=option]")];
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      if (list.hidden) ask();
      else if (options.length) mark(options.at((options.indexOf(active) + (active || by > 0 ? by : 0)) % options.length));
    } else if (event.key === "Enter" && active) {
      event.preventDefault();
      choose(input, active.dataset.value, active.dataset.label);
      close();
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    }
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (!option) return;
    choose(input, option.dataset.value, option.dataset.label);
    close();
  });
};

const enhanceAll = () => {
  document.querySelectorAll("[data-combobox]").forEach(enhance);
  document.querySelectorAll("[data-choose]").forEach((button) => {
    button.hidden = false;
  });
};

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-choose]");
  if (!button) return;
  const input = document.getElementById(button.dataset.choose);
  choose(input, button.dataset.value, button.dataset.label);
  input.removeAttribute("aria-invalid");
  button.closest(".wrong")?.remove();
  input.form.querySelector("[type=submit]:not(.away)")?.focus();
});

// A form has one field or several of a name; each sends its own value.
document.addEventListener("formdata", ({ target: form, formData }) => {
  const inputs = [...form.querySelectorAll("[data-combobox] input")].filter((input) => !input.disabled);
  for (const name of new Set(inputs.map((input) => input.name))) {
    formData.delete(name);
    for (const input of inputs.filter((one) => one.name === name)) formData.append(name, valueOf(input));
  }
});

// A filter that found no such thing: the page with the problem at its field takes the place of this one.
document.addEventListener("htmx:responseError", ({ detail: { elt } }) => {
  const form = elt.closest("form");
  if (form?.method === "get" && form.querySelector("[data-combobox]")) form.submit();
});

document.addEventListener("htmx:afterSettle", enhanceAll);
enhanceAll();
