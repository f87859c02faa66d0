// Starts Swagger UI on /docs. A file of its own because the page allows no inline script.
"use strict";

const place = document.getElementById("api");

SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  filter: true,
  layout: "BaseLayout",
  presets: [SwaggerUIBundle.presets.apis],
  validatorUrl: null, // the default asks a server on the internet
});
