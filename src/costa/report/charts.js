
"use strict";
// Show the value of a series at the pointer, or step through it with the arrow keys.
for (const chart of document.querySelectorAll("svg[data-hover]")) {
  const points = JSON.parse(chart.dataset.hover), axis = chart.querySelector(".axis");
  const output = chart.closest("figure").querySelector("output");
  const make = (name, attributes) => {
    const made = chart.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const cross = make("line", { class: "cross", y1: "0", y2: "100%", visibility: "hidden" });
  const spot = make("circle", { class: "spot", r: 4, visibility: "hidden" });
  let at = -1;
  const show = (index) => {
    at = Math.max(0, Math.min(points.length - 1, index));
    const [x, y, text] = points[at];
    for (const key of ["x1", "x2"]) cross.setAttribute(key, `${100 * x}%`);
    spot.setAttribute("cx", `${100 * x}%`);
    spot.setAttribute("cy", `${100 * y}%`);
    for (const part of [cross, spot]) part.setAttribute("visibility", "visible");
    output.textContent = text;
  };
  const hide = () => {
    for (const part of [cross, spot]) part.setAttribute("visibility", "hidden");
    output.textContent = "";
  };
  chart.addEventListener("pointermove", (event) => {
    const box = axis.getBoundingClientRect(), wanted = (event.clientX - box.left) / box.width;
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < wanted) low = middle + 1; else high = middle;
    }
    if (low && wanted - points[low - 1][0] < points[low][0] - wanted) low -= 1;
    show(low);
  });
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(at + step);
  });
}
