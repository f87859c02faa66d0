// Space on the name of a row shows what it is about at the right; arrows go on to other rows, Escape closes.
"use strict";

// Names of their own: scripts of a page share theirs.
{
  const panel = document.querySelector("[data-peek-panel]");
  const names = () => [...document.querySelectorAll("[data-peek] tbody th[scope=row] a[href]")];
  let shown = null;

  const mark = (link) => {
    for (const row of document.querySelectorAll("tr[data-peeked]")) row.removeAttribute("data-peeked");
    link?.closest("tr").setAttribute("data-peeked", "");
  };
  const close = () => {
    panel.hidden = true;
    panel.replaceChildren();
    mark(null);
    shown?.focus();
    shown = null;
  };
  const peek = (link) => {
    shown = link;
    mark(link);
    panel.hidden = false;
    htmx.ajax("GET", `${link.pathname}/peek`, { target: panel, swap: "innerHTML" });
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && shown) return close();
    const link = event.target.closest("[data-peek] tbody th[scope=row] a[href]");
    if (!link) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const next = step ? names()[names().indexOf(link) + step] : null;
    if (event.key === " ") {
      event.preventDefault();
      if (shown === link) close();
      else peek(link);
    } else if (next) {
      event.preventDefault();
      next.focus();
      if (shown) peek(next);
    }
  });
  panel.addEventListener("click", (event) => event.target.closest("[data-peek-close]") && close());
  // A session that ended, or a person who is gone, is for a whole page to tell.
  document.addEventListener("htmx:responseError", () => shown && window.location.assign(shown.href));
  document.addEventListener("htmx:afterSettle", ({ target }) => target.id === "list" && shown && close());
}
