// Follows a game session while its page is looked at: whether the game still waits, and how it ended.
"use strict";

const EVERY = 2000; // milliseconds
const place = document.querySelector("[data-game]");
const until = place ? place.dataset.until.split(" ") : [];
let asks = place && place.dataset.asks ? Number(place.dataset.asks) : Infinity; // that are left
let following = place !== null;

const show = (waiting) => {
  if (!place.querySelector("[data-waiting]") || place.classList.contains("silent") !== waiting) return;
  place.classList.toggle("silent", !waiting);
  place.querySelector("[data-waiting]").hidden = !waiting;
  place.querySelector("[data-silent]").hidden = waiting;
};

const ask = async () => {
  const answer = await fetch(place.dataset.game, { cache: "no-store" });
  if (!answer.ok || !following) return;
  const { state, closed, waiting } = await answer.json();
  if (!following) return;
  if (until.includes(state) || until.includes(closed)) {
    following = false;
    location.replace(place.dataset.next);
  } else if (state === "over") {
    following = false;
  } else {
    show(waiting);
  }
};

const follow = async () => {
  try {
    if (document.visibilityState === "visible") {
      asks -= 1;
      await ask();
    }
  } catch {
    // Not reachable just now: the next time, then.
  }
  if (following && asks > 0) setTimeout(follow, EVERY);
};

// The answer is being delivered; the page that follows shows the result.
document.addEventListener("submit", () => {
  following = false;
});
if (following) setTimeout(follow, EVERY);
