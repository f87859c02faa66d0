// Ctrl K or ⌘K: search over everything; "?": the keys. The results are those of /console/search, which works without.
"use strict";

{
  const palette = document.querySelector("#search");
  const field = palette.querySelector("input");
  const form = palette.querySelector("form");
  const isMac = /mac|iphone|ipad/i.test(navigator.userAgentData?.platform ?? navigator.platform);

  for (const shown of document.querySelectorAll("[data-keys]")) {
    if (isMac) shown.textContent = shown.textContent.replace("Ctrl ", "⌘");
    shown.hidden = false;
  }

  const open = () => {
    if (palette.open) return;
    palette.showModal();
    field.select();
    htmx.trigger(form, "opened");
  };

  // The dialog, and the field on Home: arrows choose a result, Enter opens it.
  const STEPS = { ArrowDown: 1, ArrowUp: -1 };
  for (const finder of document.querySelectorAll("[data-finder]")) {
    const found = finder.querySelector("[data-found]");
    const links = () => [...found.querySelectorAll("a")];
    const chosen = () => found.querySelector("a.chosen") ?? links()[0];
    const choose = (link) => {
      for (const one of links()) one.classList.toggle("chosen", one === link);
      link?.scrollIntoView({ block: "nearest" });
    };
    finder.addEventListener("keydown", (event) => {
      const all = links();
      const step = STEPS[event.key];
      if (step && all.length) {
        event.preventDefault();
        choose(all[(all.indexOf(chosen()) + step + all.length) % all.length]);
      }
      if (event.key === "Escape" && finder !== palette) found.replaceChildren();
    });
    finder.querySelector("form").addEventListener("submit", (event) => {
      const link = chosen();
      if (!link) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      link.click();
    });
    found.addEventListener("htmx:afterSettle", () => {
      if (finder !== palette && !finder.querySelector("input").value.trim()) found.replaceChildren();
      choose(links()[0]);
    });
    if (finder === palette) continue;
    document.addEventListener("click", ({ target }) => !finder.contains(target) && found.replaceChildren());
  }
  palette.addEventListener("click", ({ target }) => target === palette && palette.close()); // outside of it

  for (const opener of document.querySelectorAll("[data-search]")) {
    opener.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      document.querySelector("#menu").togglePopover?.(false);
      open();
    });
  }

  document.addEventListener("keydown", (event) => {
    const command = isMac ? event.metaKey : event.ctrlKey;
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (command && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    } else if (command && event.key.toLowerCase() === "s") {
      const save = document.querySelector(".save-bar.dirty [type=submit]");
      if (save) event.preventDefault();
      save?.click();
    } else if (event.key === "?" && !typing && !document.querySelector("dialog[open]")) {
      document.querySelector("#keys").showModal();
    }
  });
}
