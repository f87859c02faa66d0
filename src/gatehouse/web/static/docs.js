// The API documentation: filter, links to an operation, and sending its examples. Credentials stay in this script.
"use strict";

const sessionCard = document.getElementById("session");
const HELD_BACK = 30; // seconds before its end that a token is replaced
const REDIRECT = "opaqueredirect";
let token = null;

// -- one's own session: a user JWT for a few minutes, from the form of this page --

const ownToken = async () => {
  if (token && token.ends > Date.now()) return token;
  if (!sessionCard.dataset.csrf) return null;
  const answer = await fetch(sessionCard.dataset.address, {
    method: "POST",
    body: new URLSearchParams({ csrf: sessionCard.dataset.csrf }),
    credentials: "same-origin",
    redirect: "manual", // to a fresh sign-in, which the page has a link to
  });
  if (!answer.ok) return null;
  const given = await answer.json();
  token = { ...given, ends: Date.now() + (given.seconds - HELD_BACK) * 1000 };
  return token;
};

// -- a request, without any cookie --

const utf8Base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

const authorize = async (headers, form, auth) => {
  const value = (name) => form.querySelector(`[data-credential="${auth}"] [name="${name}"]`).value;
  if (auth === "person") {
    const own = await ownToken();
    if (!own) return false;
    headers.set("Authorization", `Bearer ${own.jwt}`);
    headers.set("Factor", own.factor);
  } else if (auth === "client") {
    headers.set("Authorization", `Basic ${utf8Base64(`${value("client_id")}:${value("client_secret")}`)}`);
  } else if (auth !== "none") {
    headers.set("Authorization", `Bearer ${value("bearer")}`);
  }
  return true;
};

const bodyOf = (text, kind) => {
  if (kind !== "application/x-www-form-urlencoded") return text;
  const lines = text.split("\n").filter((line) => line.trim());
  return new URLSearchParams(lines.map((line) => [line.split("=", 1)[0], line.slice(line.indexOf("=") + 1)]));
};

const readBody = async (answer, stop) => {
  if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return answer.text();
  const { value } = await answer.body.getReader().read(); // it has no end: its beginning is enough
  stop.abort();
  return new TextDecoder().decode(value);
};

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

const send = async (example, form) => {
  const { method, auth, kind } = example.dataset;
  const target = form.elements.target.value;
  const body = form.elements.body.value;
  const open = /\{[a-z_]+\}/.exec(target + (kind ? body : ""));
  if (open) return { problem: "replace", word: open[0] };
  const headers = new Headers(JSON.parse(example.dataset.headers));
  if (!(await authorize(headers, form, auth))) return { problem: "session" };
  if (kind) headers.set("Content-Type", kind);
  const stop = new AbortController();
  const begun = performance.now();
  const answer = await fetch(target, {
    method,
    headers,
    body: kind ? bodyOf(body, kind) : undefined,
    credentials: "omit",
    redirect: "manual",
    cache: "no-store",
    signal: stop.signal,
  });
  if (answer.type === REDIRECT) return { problem: "redirect" };
  const text = await readBody(answer, stop);
  const duration = Math.round(performance.now() - begun);
  return {
    status: `${answer.status} ${answer.statusText}, ${duration} ms`,
    headers: [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n"),
    body: pretty(text),
  };
};

const show = (form, result) => {
  const problem = form.querySelector("[role=alert]");
  problem.hidden = !result.problem;
  if (result.problem) problem.textContent = problem.dataset[result.problem].replace("{word}", result.word ?? "");
  form.querySelector(".answer").hidden = Boolean(result.problem);
  for (const place of form.querySelectorAll("[data-answer]")) place.textContent = result[place.dataset.answer] ?? "";
};

const makeForm = (example) => {
  const form = document.getElementById("try").content.firstElementChild.cloneNode(true);
  const { auth, kind } = example.dataset;
  for (const part of form.querySelectorAll("[data-credential]")) {
    if (part.dataset.credential !== auth) part.remove();
  }
  form.elements.target.value = example.dataset.target;
  form.elements.body.value = example.dataset.body;
  form.querySelector("[data-part=body]").hidden = !kind;
  if (!("changes" in example.dataset)) form.querySelector("[data-part=changes]").remove();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    show(form, await send(example, form).catch(() => ({ problem: "failed" })));
    button.disabled = false;
    button.focus();
  });
  return form;
};

for (const button of document.querySelectorAll("button.try")) {
  const example = button.closest(".example");
  button.hidden = false;
  button.addEventListener("click", () => {
    const known = example.querySelector("form");
    const form = known ?? makeForm(example);
    if (known) known.hidden = !known.hidden;
    else example.append(form);
    button.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) form.querySelector("input, textarea").focus();
  });
}

// -- the filter, and links to an operation --

const filter = document.getElementById("filter");
const noMatch = document.getElementById("no-match");
filter.closest("[hidden]").hidden = false;
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let matches = 0;
  for (const group of document.querySelectorAll(".group")) {
    const name = group.querySelector("h2").textContent;
    for (const operation of group.querySelectorAll(".operation")) {
      const text = `${name} ${operation.id} ${operation.querySelector("summary").textContent}`;
      const plain = text.replaceAll("\u200b", "").toLowerCase();
      operation.hidden = !words.every((word) => plain.includes(word));
      matches += operation.hidden ? 0 : 1;
    }
    group.hidden = !group.querySelector(".operation:not([hidden])");
  }
  noMatch.textContent = matches ? "" : noMatch.dataset.text;
});

const openLinked = () => {
  const linked = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (linked?.matches(".operation")) {
    linked.open = true;
    linked.scrollIntoView();
  }
};
window.addEventListener("hashchange", openLinked);
openLinked();
