// Forms with a save bar: says whether something changed, and asks before changes are lost.
"use strict";

{
  const valuesOf = (form) =>
    String(new URLSearchParams([...new FormData(form)].map(([name, value]) => [name, value.name ?? value])));
  const bars = [...document.querySelectorAll("form [data-save-bar]")].map((bar) => {
    const form = bar.closest("form");
    return { bar, form, saved: "unsaved" in bar.dataset ? null : valuesOf(form), isSent: false };
  });
  const isDirty = ({ form, saved }) => valuesOf(form) !== saved;

  const show = (one) => {
    const state = one.bar.querySelector(".state");
    one.bar.classList.toggle("dirty", isDirty(one));
    const words = isDirty(one) ? state.dataset.dirty : state.dataset.clean;
    if (state.textContent !== words) state.textContent = words;
  };

  for (const one of bars) {
    for (const kind of ["input", "change"]) one.form.addEventListener(kind, () => show(one));
    show(one);
  }
  window.addEventListener("submit", (event) => {
    const sent = bars.find((one) => one.form === event.target);
    if (sent && !event.defaultPrevented) sent.isSent = true; // htmx sends without leaving
  });
  window.addEventListener("beforeunload", (event) => {
    if (bars.some((one) => !one.isSent && isDirty(one))) event.preventDefault();
  });
}
