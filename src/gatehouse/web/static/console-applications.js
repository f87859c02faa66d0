// A document is taken from a file, and sent in pieces: a field of a form holds no more than 64 KiB.
"use strict";

const PIECE = 15000; // characters, of at most four bytes each

for (const label of document.querySelectorAll("[data-file]")) {
  const into = document.getElementById(label.dataset.file);
  label.hidden = false;
  label.querySelector("input").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) into.value = await file.text();
  });
}

for (const form of document.querySelectorAll("[data-pieces]")) {
  form.addEventListener("formdata", (event) => {
    const name = form.dataset.pieces;
    const text = event.formData.get(name);
    event.formData.delete(name);
    for (let start = 0; start < text.length || start === 0; start += PIECE) {
      event.formData.append(name, text.slice(start, start + PIECE));
    }
  });
}
