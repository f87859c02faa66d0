// Shows the passkey forms where the browser can use them. What the authenticator answers is sent as an ordinary
// form, so that everything after it is the same as without script.
"use strict";

(() => {
  const { browserSupportsWebAuthn, browserSupportsWebAuthnAutofill, startAuthentication, startRegistration } =
    SimpleWebAuthnBrowser;

  const send = (form, credential) => {
    form.elements.credential.value = JSON.stringify(credential);
    form.submit();
  };

  const ask = async (form) => {
    const optionsJSON = JSON.parse(form.dataset.options);
    const start = form.dataset.passkey === "create" ? startRegistration : startAuthentication;
    const failed = form.querySelector("[data-failed]");
    failed.hidden = true;
    try {
      send(form, await start({ optionsJSON }));
    } catch (error) {
      failed.textContent = failed.dataset.failed;
      failed.hidden = false;
    }
  };

  const offerInAutofill = async (form) => {
    if (!(await browserSupportsWebAuthnAutofill())) return;
    const optionsJSON = JSON.parse(form.dataset.options);
    try {
      send(form, await startAuthentication({ optionsJSON, useBrowserAutofill: true }));
    } catch (error) {
      // Ended by the button, or by leaving: nothing to tell.
    }
  };

  const supported = browserSupportsWebAuthn();
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = !supported;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      ask(form);
    });
    if (supported && "autofill" in form.dataset) offerInAutofill(form);
  }
  for (const words of document.querySelectorAll("[data-needs-script]")) words.hidden = true;
  for (const words of document.querySelectorAll("[data-needs-passkeys]")) words.hidden = supported;
})();
