// Draws the sign-ins of the period. The page has the numbers as a table too.
"use strict";

// @import "vendor/uplot/uPlot.iife.min.js";

const place = document.querySelector("[data-chart]");
// A token of the style sheet as the color it is in this theme.
const colour = (name) => {
  const probe = place.appendChild(document.createElement("span"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};
const HOUR = 3600;
const bucket = Number(place?.dataset.bucket);
const parts = bucket > HOUR ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

const draw = () => {
  const data = JSON.parse(place.dataset.chart);
  const label = new Intl.DateTimeFormat(document.documentElement.lang, parts);
  const bars = uPlot.paths.bars({ size: [0.7, 24] });
  const line = (label, name) => ({ label, stroke: colour(name), width: 2, points: { size: 5 } });
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--border"), width: 1 } };
  place.replaceChildren();
  return new uPlot(
    {
      width: place.clientWidth,
      height: 220,
      legend: { live: false },
      cursor: { y: false },
      scales: { x: { range: (_chart, first, last) => [first - bucket / 2, last + bucket / 2] }, y: { range: (_chart, _low, high) => [0, Math.max(4, high * 1.1)] } },
      axes: [
        { ...axis, values: (_chart, times) => times.map((time) => label.format(time * 1000)) },
        { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000, 100000] },
      ],
      series: [
        {},
        { ...line(place.dataset.signedIn, "--link"), fill: colour("--link"), paths: bars },
        line(place.dataset.refused, "--danger"),
        line(place.dataset.game, "--success"),
      ],
    },
    data,
    place,
  );
};

if (place) {
  let chart = draw();
  window.addEventListener("resize", () => chart.setSize({ width: place.clientWidth, height: 220 }));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    chart.destroy();
    chart = draw();
  });
}

// A link to the numbers unfolds them.
const unfold = () => {
  const asked = document.querySelector("#numbers");
  if (location.hash === "#numbers" && asked) asked.open = true;
};
window.addEventListener("hashchange", unfold);
unfold();
