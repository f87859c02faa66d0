// Post the response of a sign-in to the client. Without this script the page's button does it.
"use strict";

document.querySelector("form[data-post]").submit();
