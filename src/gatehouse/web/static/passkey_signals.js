// Tells passkey managers which passkeys of the account there are, what the account is called, or that a passkey is
// unknown here (WebAuthn Signal API). Browsers without these calls do nothing.
"use strict";

for (const element of document.querySelectorAll("[data-passkey-signals]")) {
  for (const [name, options] of Object.entries(JSON.parse(element.dataset.passkeySignals))) {
    window.PublicKeyCredential?.[name]?.(options).catch(() => {}); // such as of a host that the browser cannot check
  }
}
