// The script that every screen of the console has.
"use strict";

// @import "vendor/htmx/htmx.min.js";
// @import "enhance.js";
// @import "console.js";
// @import "save-bar.js";
// @import "console-search.js";
// @import "console-typed.js";
// @import "combobox.js";
