// Tables whose cells are staged: changed here, reviewed and saved by the server.
//
// A table says where it lives (data-staging) and how a click changes a cell (data-kind): "cycle" through true, false
// and default, or "toggle" between given and not. Rows and columns are named by data-row and data-column; a cell is
// both, with "/" between. What is staged is kept for this tab, so it survives search, paging and going back; a page
// of the server that has decided about it says what is left in data-edits.

const MOST = 60000; // characters of what is sent: a form's text may have 65,536 bytes
const CYCLE = ["true", "false", "default"];

// An empty list has no table yet; searching brings one.
const place = document.querySelector("[data-staging]")?.dataset.staging ?? location.pathname;
const key = `staging:${place}`;
const foldKey = `folded:${place}`;
const table = () => document.querySelector("table[data-staging]");
const bar = document.querySelector("[data-staging-bar]");

// -- what is staged: cell -> { was, value, version, row, column } --

const load = () => JSON.parse(sessionStorage.getItem(key) || "{}");
const keep = (staged) => sessionStorage.setItem(key, JSON.stringify(staged));
const asSent = (staged) =>
  JSON.stringify(
    Object.entries(staged).map(([cell, { was, value, version, row, column }]) => [cell, was, value, version, row, column]),
  );

const decided = document.querySelector("[data-edits]");
if (decided) {
  const left = JSON.parse(decided.dataset.edits);
  keep(
    Object.fromEntries(
      left.map(([cell, was, value, version, row, column]) => [cell, { was, value, version, row, column }]),
    ),
  );
}
let staged = load();

// -- cells --

const columnOf = (td) => td.closest("table").tHead.rows[0].cells[td.cellIndex];
const cellOf = (button) => {
  const td = button.closest("td");
  const { row, scope } = { ...td.parentElement.dataset, scope: table().dataset.scope };
  return [row, columnOf(td).dataset.column, ...(scope ? [scope] : [])].join("/");
};

const find = (cell) => {
  const [row, column, scope = ""] = cell.split("/");
  if (scope !== (table().dataset.scope || "")) return null;
  const tr = table().querySelector(`tr[data-row="${CSS.escape(row)}"]`);
  const th = table().querySelector(`th[data-column="${CSS.escape(column)}"]`);
  return tr && th ? tr.cells[th.cellIndex].querySelector("[data-value]") : null;
};

const language = document.documentElement.lang;
const region = navigator.languages.find((tag) => tag.split("-")[0] === language) || language; // as enhance.js
const moment = new Intl.DateTimeFormat(region, { dateStyle: "medium", timeStyle: "short" });
const words = (value) => {
  const said = value.split("|")[0];
  const word = table().getAttribute(`data-word-${said || "none"}`);
  if (word) return word;
  const offered = document.querySelector(`[data-set="${CSS.escape(value)}"]`);
  if (offered) return offered.textContent;
  return /^\d+$/.test(value) ? moment.format(new Date(Number(value) * 1000)) : said;
};

const kindOf = (value) => {
  if (table().dataset.kind === "cycle") return value.split("|")[0];
  return value === "" ? "none" : "given";
};

const paint = (button, value) => {
  const isStaged = value !== button.dataset.value;
  button.className = kindOf(value);
  button.classList.toggle("staged", isStaged);
  if (!button.dataset.words) button.dataset.words = button.firstElementChild.textContent;
  button.firstElementChild.textContent = isStaged ? words(value) : button.dataset.words;
};

const stage = (button, value) => {
  const cell = cellOf(button);
  const tr = button.closest("tr");
  const was = button.dataset.value;
  const before = staged[cell];
  delete staged[cell];
  if (value !== was) {
    const version = Number(tr.dataset.version || table().dataset.version);
    staged[cell] = { was, value, version, row: tr.dataset.label, column: columnOf(button.closest("td")).dataset.label };
    if (asSent(staged).length > MOST) {
      delete staged[cell];
      if (before) staged[cell] = before;
      tell(bar.dataset.full);
      return;
    }
  }
  keep(staged);
  paint(button, value);
  count();
};

const valueOf = (button) => (staged[cellOf(button)] || { value: button.dataset.value }).value;

const change = (button) => {
  const [value, was] = [valueOf(button), button.dataset.value];
  if (table().dataset.kind === "toggle") {
    const given = "ended" in button.dataset ? "0" : was || "0";
    return stage(button, value === "" || (value === was && "ended" in button.dataset) ? given : "");
  }
  const next = CYCLE[(CYCLE.indexOf(value.split("|")[0]) + 1) % CYCLE.length];
  return stage(button, next === was.split("|")[0] ? was : next); // back where it was: with its parameters
};

const discard = (cell) => {
  delete staged[cell];
  keep(staged);
  const button = table() && find(cell);
  if (button) paint(button, button.dataset.value);
  count();
};

// -- the bar --

const tell = (text) => {
  document.querySelector("[data-staging-status]").textContent = text;
};

const count = () => {
  const number = Object.keys(staged).length;
  const forms = JSON.parse(bar.dataset.counted);
  const text = forms[new Intl.PluralRules(document.documentElement.lang).select(number)].replace("{count}", number);
  bar.hidden = number === 0;
  bar.querySelector("[data-staging-count]").textContent = text;
  for (const input of document.querySelectorAll("input[name=edits]")) input.value = asSent(staged);
  tell(number ? text : "");
  list();
};

const list = () => {
  const place = bar.querySelector("[data-staging-list]");
  if (!bar.querySelector("details").open) return;
  place.replaceChildren(
    ...Object.entries(staged).map(([cell, { value, row, column }]) => {
      const item = document.createElement("li");
      const what = document.createElement("span");
      what.textContent = `${row} · ${column}: ${(value === "" && table()?.dataset.taken) || (table() ? words(value) : value)}`;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "link";
      button.textContent = bar.dataset.discard;
      button.setAttribute("aria-label", `${bar.dataset.discard}: ${row} · ${column}`);
      button.addEventListener("click", () => {
        discard(cell);
        (place.querySelector("button") || bar.querySelector("summary")).focus();
      });
      item.append(what, button);
      return item;
    }),
  );
};

// -- the table: one cell takes part in the order of tabs, arrows go on from there --

const cells = () => table().querySelectorAll("td [data-value]");

const enter = (button) => {
  const before = table().querySelector("[data-value][tabindex='0']");
  if (before) before.tabIndex = -1;
  button.tabIndex = 0;
};

const step = (button, down, right) => {
  const rows = [...table().querySelectorAll("tr[data-row]")].filter((tr) => tr.getClientRects().length);
  const td = button.closest("td");
  let [row, column] = [rows.indexOf(td.parentElement), td.cellIndex];
  for (;;) {
    [row, column] = [row + down, column + right];
    const next = rows[row] && rows[row].cells[column];
    if (!next || column < 1) return;
    const found = next.querySelector("[data-value]");
    if (found) {
      enter(found);
      found.focus();
      return;
    }
  }
};

const ARROWS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

const dress = () => {
  for (const time of document.querySelectorAll(".until time")) time.textContent = moment.format(new Date(time.dateTime));
  for (const fold of document.querySelectorAll(".fold")) fold.disabled = false;
  for (const hint of document.querySelectorAll(".needs-script")) hint.hidden = false;
  const folded = JSON.parse(sessionStorage.getItem(foldKey) || "[]");
  for (const group of document.querySelectorAll("tbody[data-group]")) shut(group, folded.includes(group.dataset.group));
  if (!table()) return;
  for (const [cell, { value }] of Object.entries(staged)) {
    const button = find(cell);
    if (button && button.dataset.value === value) discard(cell); // it came to be so by itself
    else if (button) paint(button, value);
  }
  const first = cells()[0];
  if (first) enter(first);
};

const shut = (group, isShut) => {
  group.classList.toggle("shut", isShut);
  group.querySelector(".fold").setAttribute("aria-expanded", String(!isShut));
};

document.addEventListener("click", (event) => {
  const fold = event.target.closest(".fold");
  if (fold) {
    const group = fold.closest("tbody");
    shut(group, !group.classList.contains("shut"));
    const folded = [...document.querySelectorAll("tbody.shut")].map((one) => one.dataset.group);
    sessionStorage.setItem(foldKey, JSON.stringify(folded));
    return;
  }
  const more = event.target.closest("[data-more]");
  if (more) return openMenu(more.parentElement.querySelector("[data-value]"));
  const button = event.target.closest("table[data-staging] [data-value]");
  if (!button) return;
  enter(button);
  change(button);
});

document.addEventListener("keydown", (event) => {
  const button = event.target.closest("table[data-staging] [data-value]");
  if (!button || !ARROWS[event.key]) return;
  event.preventDefault();
  if (event.altKey && event.key === "ArrowDown" && menu) openMenu(button);
  else step(button, ...ARROWS[event.key]);
});

document.addEventListener("contextmenu", (event) => {
  const button = event.target.closest("table[data-staging] [data-value]");
  if (!button || !menu) return;
  event.preventDefault();
  openMenu(button);
});

// -- a small menu that sets one of several values (time limits) --

const menu = document.querySelector("[data-staging-menu]");
let chosen = null;

const openMenu = (button) => {
  chosen = button;
  enter(button);
  const box = button.getBoundingClientRect();
  menu.showPopover();
  menu.style.left = `${Math.max(8, Math.min(box.left, window.innerWidth - menu.offsetWidth - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(box.bottom + 4, window.innerHeight - menu.offsetHeight - 8))}px`;
  menu.querySelector("button").focus();
};

const set = (value) => {
  menu.hidePopover();
  stage(chosen, value);
  chosen.focus();
};

if (menu) {
  const date = menu.querySelector("input[type=date]");
  menu.addEventListener("click", (event) => {
    const { set: value } = event.target.dataset;
    if (value !== undefined) set(value);
    if (event.target.matches("[data-set-date]") && date.value) set(date.value) // the server knows where the day ends;
  });
  menu.addEventListener("keydown", (event) => {
    const items = [...menu.querySelectorAll("button, input")];
    const at = items.indexOf(document.activeElement);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") setTimeout(() => chosen.focus());
    if (!by || event.target === date) return;
    event.preventDefault();
    items[(at + by + items.length) % items.length].focus();
  });
}

// -- import: a file is read into the text, nothing is uploaded --

for (const label of document.querySelectorAll("[data-staging-import] .file")) {
  label.hidden = false;
  const input = label.querySelector("input");
  input.addEventListener("change", async () => {
    if (input.files.length) label.closest("form").querySelector("textarea").value = await input.files[0].text();
  });
}

// -- leaving with something staged --

let stays = !table();
for (const kind of ["click", "submit"]) {
  document.addEventListener(kind, (event) => {
    const form = event.target.closest("[data-staging-bar], [data-staging-import]");
    const link = event.target.closest("[data-staging-stays] a");
    if (link || (form && kind === "submit")) stays = true;
  });
}
window.addEventListener("beforeunload", (event) => {
  if (!stays && Object.keys(staged).length) event.preventDefault();
});
window.addEventListener("pageshow", () => {
  stays = !table();
});

if (bar) {
  bar.querySelector("details").addEventListener("toggle", list);
  bar.querySelector("[data-staging-discard]").addEventListener("click", () => {
    for (const cell of Object.keys(staged)) discard(cell);
  });
  document.addEventListener("htmx:afterSwap", dress);
  dress();
  count();
}
