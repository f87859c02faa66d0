// Forms with a save bar: says whether something changed, and asks before changes are lost.
"use strict";

{
  const valuesOf = (form) => {
    const data = new FormData(form);
    for (const field of form.elements) {
      if (!form.contains(field)) data.delete(field.name); // what a preview shows is not saved
    }
    return String(new URLSearchParams([...data].map(([name, value]) => [name, value.name ?? value])));
  };
  // The page that answers a form is at the address of the form; another form of the page holds what is stored.
  const isAnswer = (form) => new URL(form.getAttribute("action") ?? "", location).pathname === location.pathname;
  const bars = [...document.querySelectorAll("form [data-save-bar]")].map((bar) => {
    const form = bar.closest("form");
    const isUnsaved = "unsaved" in bar.dataset && isAnswer(form);
    return { bar, form, saved: isUnsaved ? null : valuesOf(form), isSent: false };
  });
  const isDirty = ({ form, saved }) => valuesOf(form) !== saved;

  const show = (one) => {
    const state = one.bar.querySelector(".state");
    one.bar.classList.toggle("dirty", isDirty(one));
    const words = isDirty(one) ? state.dataset.dirty : state.dataset.clean;
    if (state.textContent !== words) state.textContent = words;
  };
  const showAll = () => bars.forEach(show);

  for (const kind of ["input", "change", "htmx:afterSettle"]) document.addEventListener(kind, showAll);
  showAll();
  window.addEventListener("submit", (event) => {
    const sent = bars.find((one) => one.form === event.target);
    if (sent && !event.defaultPrevented) sent.isSent = true; // htmx sends without leaving
  });
  window.addEventListener("beforeunload", (event) => {
    if (bars.some((one) => !one.isSent && isDirty(one))) event.preventDefault();
  });
}
