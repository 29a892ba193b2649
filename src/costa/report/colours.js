
// What the map can be coloured by: groups, each with a colour and a shape, or a scale.
const COLOURS = {  // Okabe and Ito's; those too close to the background are adjusted
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#111111", "#d3bf00"],
  dark: ["#2590dd", "#e8702a", "#0fb184", "#cc79a7", "#8fd0f7", "#e69f00", "#f5f5f5", "#f0e442"],
};
const RAMP = {
  light: ["#93bbde", "#3478b3", "#062a55"],  // a larger value is further from the background
  dark: ["#3c6699", "#6db3e8", "#f2f9ff"],
};
const SHAPES = 6, NONE = "#9a9a9a", CLIPPED = 0.02;

const darkMode = matchMedia("(prefers-color-scheme: dark)"), onPaper = matchMedia("print");
const theme = () => (darkMode.matches && !onPaper.matches ? "dark" : "light");
const hexToRgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
const colourOf = (group) => (group < 0 ? NONE : COLOURS[theme()][group % 8]);
const shapeOf = (group) => (group < 0 ? 0 : Math.floor(group / 8) % SHAPES);

function rampAt(t) {
  const stops = RAMP[theme()].map(hexToRgb), place = Math.min(t, 0.9999) * (stops.length - 1), low = Math.floor(place);
  return stops[low].map((value, i) => Math.round(value + (place - low) * (stops[low + 1][i] - value)));
}

// A scale has a place from 0 to 1 for each node, NaN where it has no value, and marks along the way.
function degreeScale(degree) {
  const most = degree.reduce((a, b) => Math.max(a, b), 1), along = (count) => Math.log1p(count) / Math.log1p(most);
  const marks = [];
  for (let count = 1; count <= most; count *= 10) marks.push({ at: along(count), text: count.toLocaleString("en") });
  if (marks.at(-1).at < 0.88) marks.push({ at: 1, text: most.toLocaleString("en") });
  return { at: Float32Array.from(degree, along), marks, name: `degree 0 to ${most}`, missing: 0 };
}

// From the least to the median to the most, so that a few large values do not take all the colours; nor do outliers,
// which share the ends.
function numberScale(name, values) {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort(), last = sorted.length - 1;
  const quantile = (share) => sorted[Math.round(share * last)];
  let low = quantile(CLIPPED), high = quantile(1 - CLIPPED), middle = quantile(0.5);
  if (low === high) [low, high] = [sorted[0], sorted[last]];
  if (middle === low || middle === high) middle = (low + high) / 2;
  const along = (value) => (value < middle ? (value - low) / (middle - low) / 2 : 0.5 + (value - middle) / (high - middle) / 2);
  const texts = [`${low > sorted[0] ? "≤ " : ""}${low}`, String(Number(middle.toPrecision(6))), `${high < sorted[last] ? "≥ " : ""}${high}`];
  return {
    at: Float32Array.from(values, (value) => Math.max(0, Math.min(1, along(value)))),
    marks: texts.map((text, place) => ({ at: place / 2, text })), name: `${name} ${texts.join(" to ")}`, missing: values.length - sorted.length,
  };
}

const SHAPE_PATHS = [
  "M7 1.5a5.5 5.5 0 1 0 .01 0z", "M7 1l6 11H1z", "M2 2h10v10H2z", "M7 .5L13.5 7 7 13.5.5 7z",
  "M5 1h4v4h4v4H9v4H5V9H1V5h4z", "M7 1a6 6 0 1 0 .01 0zm0 3.4a2.6 2.6 0 1 1-.01 0z",
];
const element = (name, text, attributes = {}) => Object.assign(document.createElement(name), { textContent: text, ...attributes });

function vector(name, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}
function groupIcon(group) {
  const icon = vector("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" });
  vector("path", { d: SHAPE_PATHS[shapeOf(group)], fill: colourOf(group) }, icon);
  return icon;
}

// The legend of groups: a button for each, which is pressed while its group is among the chosen.
function groupLegend(groups, chosen, choose) {
  const counts = new Map();
  for (const group of groups.of) counts.set(group, (counts.get(group) || 0) + 1);
  const place = (group) => groups.numbers?.[group] ?? group;  // clusters in the order of their numbers
  return [...counts.keys()].sort((a, b) => (a < 0) - (b < 0) || place(a) - place(b)).map((group) => {
    const button = element("button", "", { type: "button" });
    const show = () => button.setAttribute("aria-pressed", String(chosen.has(group)));
    button.append(groupIcon(group), element("span", groups.names[group] ?? groups.none), element("small", counts.get(group).toLocaleString("en")));
    button.addEventListener("click", () => { choose(group); show(); });
    show();
    return button;
  });
}
function scaleLegend(scale) {
  const drawn = vector("svg", { class: "ramp", role: "img", "aria-label": `Colours from ${scale.name}` });
  const gradient = vector("linearGradient", { id: "ramp" }, vector("defs", {}, drawn));
  for (let stop = 0; stop <= 10; stop++) {
    vector("stop", { offset: `${10 * stop}%`, "stop-color": `rgb(${rampAt(stop / 10).join(" ")})` }, gradient);
  }
  vector("rect", { width: "100%", height: 14, rx: 3, fill: "url(#ramp)" }, drawn);
  for (const { at, text } of scale.marks) {
    const anchor = at < 0.05 ? "start" : at > 0.95 ? "end" : "middle";
    vector("text", { x: `${100 * at}%`, y: 32, "text-anchor": anchor }, drawn).textContent = text;
  }
  if (!scale.missing) return [drawn];
  const none = element("span", "", { className: "none" });
  none.append(groupIcon(-1), "no value", element("small", scale.missing.toLocaleString("en")));
  return [drawn, none];
}
