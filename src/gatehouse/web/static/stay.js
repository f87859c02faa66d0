// Keeps the choice to stay signed in for the other ways to sign in: a passkey, a provider, an email link.
"use strict";

const YEAR = 365 * 24 * 3600;
const box = document.querySelector("[data-stay]");
box?.addEventListener("change", () => {
  const secure = location.protocol === "https:" ? "; secure" : "";
  const [value, age] = box.checked ? ["1", YEAR] : ["", 0];
  document.cookie = `${box.dataset.stay}=${value}; path=/; max-age=${age}; samesite=lax${secure}`;
});
