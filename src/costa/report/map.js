
// The map of the nodes: points in WebGL, what belongs to one node on a second canvas above them.
(() => {
  const data = JSON.parse(document.getElementById("nodes").textContent);
  const canvas = document.getElementById("points");
  if (!data || !canvas) return;

  const COLOURS = {  // Okabe and Ito's; those too close to the background are adjusted
    light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#111111", "#d3bf00"],
    dark: ["#2590dd", "#e8702a", "#0fb184", "#cc79a7", "#8fd0f7", "#e69f00", "#f5f5f5", "#f0e442"],
  };
  const RAMP = {
    light: ["#bcd4ea", "#3f84bd", "#062a55"],  // a larger degree is further from the background
    dark: ["#2c4a6e", "#5aa3dc", "#eaf5ff"],
  };
  const SHAPES = 6, NONE = "#9a9a9a", REACH = 14, CELLS = 128, MOST_NAMES = 60, LISTED = 8;

  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const whole = (text) => {
    const from = bytes(text), to = new Uint32Array(from.length);
    let count = 0, value = 0, scale = 1;
    for (const byte of from) {
      value += (byte & 127) * scale;
      if (byte & 128) scale *= 128;
      else { to[count++] = value; value = 0; scale = 1; }
    }
    return to.subarray(0, count);
  };
  const groups = (packed) => packed && {
    names: packed.names, of: Int32Array.from(whole(packed.of), (code) => code - 1),
    same: whole(packed.same), known: whole(packed.known),
  };

  const n = data.n, labels = groups(data.labels), clusters = groups(data.clusters);
  const degree = whole(data.degree), nearest = whole(data.nearest), near = data.near;
  const places = new Uint16Array(bytes(data.points).buffer);
  const px = new Float32Array(n), py = new Float32Array(n);
  for (let i = 0; i < n; i++) { px[i] = places[2 * i] / 65535; py[i] = places[2 * i + 1] / 65535; }
  const nameOf = (node) => (data.ids ? data.ids[node] : String(node));
  const neighbours = data.edges ? readEdges(whole(data.edges)) : null;

  function readEdges(stream) {
    const first = new Uint32Array(n + 1), ends = [[], []];
    for (let node = 0, at = 0; node < n; node++) {
      let other = node;
      for (let left = stream[at++]; left > 0; left--) {
        other += stream[at++];
        ends[0].push(node); ends[1].push(other);
        first[node + 1]++; first[other + 1]++;
      }
    }
    for (let node = 0; node < n; node++) first[node + 1] += first[node];
    const next = first.slice(), all = new Uint32Array(first[n]);
    ends[0].forEach((a, edge) => { const b = ends[1][edge]; all[next[a]++] = b; all[next[b]++] = a; });
    return (node) => all.subarray(first[node], first[node + 1]);
  }

  // A grid over the square finds the node under the pointer.
  const cellOf = (x) => Math.max(0, Math.min(CELLS - 1, Math.floor(x * CELLS)));
  const begins = new Uint32Array(CELLS * CELLS + 1), members = new Uint32Array(n);
  for (let i = 0; i < n; i++) begins[cellOf(py[i]) * CELLS + cellOf(px[i]) + 1]++;
  for (let cell = 0; cell < CELLS * CELLS; cell++) begins[cell + 1] += begins[cell];
  const filled = begins.slice();
  for (let i = 0; i < n; i++) members[filled[cellOf(py[i]) * CELLS + cellOf(px[i])]++] = i;

  const over = document.getElementById("over"), card = document.getElementById("card");
  const legend = document.getElementById("legend"), stage = canvas.parentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)"), print = matchMedia("print");
  const theme = () => (dark.matches && !print.matches ? "dark" : "light");
  const modes = { labels, clusters, degree: null };
  let mode = labels ? "labels" : "clusters", singled = new Set(), hovered = -1, kept = -1, wanted = false;
  let width = 1, height = 1, ratio = 1;
  const view = { x: 0.5, y: 0.5, scale: 1, whole: 1 };

  const gl = canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true });
  if (!gl) {
    stage.replaceChildren(Object.assign(document.createElement("p"), {
      className: "none", textContent: "This browser cannot draw the map: it has no WebGL 2. The rest of the page works.",
    }));
    return;
  }
  const VERTEX = `#version 300 es
    in vec2 at; in vec4 colour; in float shape;
    uniform vec2 scale, shift; uniform float size;
    out vec4 shade; flat out int kind;
    void main() {
      gl_Position = vec4(at * scale + shift, 0.0, 1.0);
      gl_PointSize = size;
      shade = colour;
      kind = int(shape + 0.5);
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float;
    in vec4 shade; flat in int kind; uniform float size;
    out vec4 colour;
    void main() {
      vec2 p = abs(gl_PointCoord * 2.0 - 1.0);
      float y = gl_PointCoord.y * 2.0 - 1.0, d = length(p) - 0.85;
      if (kind == 1) d = max(y - 0.7, (1.65 * p.x - 0.9 * (y + 0.95)) / 1.88);
      if (kind == 2) d = max(p.x, p.y) - 0.75;
      if (kind == 3) d = (p.x + p.y - 1.0) / 1.42;
      if (kind == 4) d = min(max(p.x - 0.95, p.y - 0.33), max(p.y - 0.95, p.x - 0.33));
      if (kind == 5) d = max(d, 0.42 - length(p));
      float inside = clamp(0.5 - d * size * 0.5, 0.0, 1.0) * shade.a;
      colour = vec4(shade.rgb * inside, inside);
    }`;
  let program, buffers, uniforms;

  function setUp() {
    program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    buffers = Object.fromEntries(["at", "colour", "shape", "order"].map((name) => [name, gl.createBuffer()]));
    uniforms = Object.fromEntries(["scale", "shift", "size"].map((name) => [name, gl.getUniformLocation(program, name)]));
    attribute("at", 2, gl.UNSIGNED_SHORT, true, places);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    paint();
  }
  function attribute(name, size, type, normalised, values) {
    const where = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(where);
    gl.vertexAttribPointer(where, size, type, normalised, 0, 0);
  }

  const hex = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const colourOf = (group) => group < 0 ? NONE : COLOURS[theme()][group % 8];
  const shapeOf = (group) => (group < 0 ? 0 : Math.floor(group / 8) % SHAPES);
  const most = degree.reduce((a, b) => Math.max(a, b), 1);
  const along = (count) => Math.log1p(count) / Math.log1p(most);
  function ramp(t) {
    const stops = RAMP[theme()].map(hex), place = Math.min(t, 0.9999) * (stops.length - 1), low = Math.floor(place);
    return stops[low].map((value, i) => Math.round(value + (place - low) * (stops[low + 1][i] - value)));
  }

  // A shuffled order of the nodes: otherwise the last class would cover the others.
  const mixed = new Uint32Array(n);
  for (let i = 0, seed = 1; i < n; i++) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = Math.floor(seed / 4294967296 * (i + 1));
    mixed[i] = mixed[other];
    mixed[other] = i;
  }

  function paint() {
    const colours = new Uint8Array(4 * n), shapes = new Uint8Array(n), groupsNow = modes[mode];
    const memo = new Map();
    for (let i = 0; i < n; i++) {
      let rgb, alpha = 225;
      if (groupsNow) {
        const group = groupsNow.of[i];
        if (!memo.has(group)) memo.set(group, hex(colourOf(group)));
        rgb = memo.get(group);
        shapes[i] = shapeOf(group);
        if (group < 0) alpha = 110;
      } else rgb = ramp(along(degree[i]));
      if (faded(i)) alpha = 18;
      colours.set([...rgb, alpha], 4 * i);
    }
    attribute("colour", 4, gl.UNSIGNED_BYTE, true, colours);
    attribute("shape", 1, gl.UNSIGNED_BYTE, false, shapes);
    const back = mixed.filter((i) => faded(i)), front = mixed.filter((i) => !faded(i)), order = new Uint32Array(n);
    order.set(back);
    order.set(front, back.length);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffers.order);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.STATIC_DRAW);
    redraw();
  }
  const faded = (i) => singled.size > 0 && modes[mode] !== null && !singled.has(modes[mode].of[i]);

  function fit() {
    let [left, right, bottom, top] = [1, 0, 1, 0];
    for (let i = 0; i < n; i++) {
      left = Math.min(left, px[i]); right = Math.max(right, px[i]);
      bottom = Math.min(bottom, py[i]); top = Math.max(top, py[i]);
    }
    view.x = (left + right) / 2;
    view.y = (bottom + top) / 2;
    view.whole = view.scale = 0.93 * Math.min(width / Math.max(right - left, 0.05), height / Math.max(top - bottom, 0.05));
  }
  const toScreen = (i) => [(px[i] - view.x) * view.scale + width / 2, height / 2 - (py[i] - view.y) * view.scale];
  const toPlace = (x, y) => [(x - width / 2) / view.scale + view.x, (height / 2 - y) / view.scale + view.y];

  function resize() {
    const box = stage.getBoundingClientRect(), before = view.scale / view.whole, centre = [view.x, view.y];
    [width, height, ratio] = [Math.max(1, stage.clientWidth), Math.max(1, stage.clientHeight), window.devicePixelRatio || 1];
    if (!box.width) return;
    for (const each of [canvas, over]) {
      each.width = Math.round(width * ratio);
      each.height = Math.round(height * ratio);
    }
    fit();
    if (before !== 1) { view.scale = view.whole * before; [view.x, view.y] = centre; }
    redraw();
  }
  function redraw() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(draw);
  }
  function draw() {
    wanted = false;
    const size = Math.min(18, Math.max(2.4, 150 / Math.sqrt(n) + 1.6) * Math.sqrt(view.scale / view.whole)) * ratio;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const scale = [2 * view.scale / width, 2 * view.scale / height];
    gl.uniform2f(uniforms.scale, ...scale);
    gl.uniform2f(uniforms.shift, -view.x * scale[0], -view.y * scale[1]);
    gl.uniform1f(uniforms.size, modes[mode] && modes[mode].names.length > 8 ? 1.15 * size : size);
    gl.drawElements(gl.POINTS, n, gl.UNSIGNED_INT, 0);
    point(kept >= 0 ? kept : hovered);
  }

  // One node: lines to its neighbours, rings around the nearest vectors, and the card.
  function point(node) {
    const pen = over.getContext("2d"), ink = getComputedStyle(document.body).color;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    writeNames(pen, node < 0 ? [] : [node, ...nearest.subarray(node * near, node * near + near)]);
    if (node < 0) { card.hidden = true; return; }
    const [x, y] = toScreen(node);
    pen.strokeStyle = pen.fillStyle = ink;
    pen.globalAlpha = 0.45;
    pen.beginPath();
    for (const other of neighbours ? neighbours(node) : []) { pen.moveTo(x, y); pen.lineTo(...toScreen(other)); }
    pen.stroke();
    pen.globalAlpha = 1;
    for (let k = 0; k < near; k++) ring(pen, ...toScreen(nearest[node * near + k]), 6, 1.5);
    ring(pen, x, y, 8, 3);
    describe(node);
    if (matchMedia("(max-width: 480px)").matches) {
      card.style.left = card.style.right = "8px";
      card.style.top = y < 0.55 * height ? "auto" : "8px";
      card.style.bottom = y < 0.55 * height ? "8px" : "auto";
      return;
    }
    // outwards if there is space, so that the card hides little of the map
    const sides = [x + 18, x - 18 - card.offsetWidth], fits = (at) => at >= 6 && at + card.offsetWidth <= width - 6;
    const left = (x < width / 2 ? sides.reverse() : sides).find(fits) ?? sides[0];
    card.style.right = card.style.bottom = "auto";
    card.style.left = `${Math.max(6, Math.min(width - card.offsetWidth - 6, left))}px`;
    card.style.top = `${Math.max(6, Math.min(height - card.offsetHeight - 6, y - card.offsetHeight / 2))}px`;
  }
  // Names, as on a road map: those of the chosen node and its nearest, then by degree, each where there is space.
  const named = data.ids && data.ids.some((id) => Number.isNaN(Number(id)));
  const ranked = named ? Uint32Array.from(degree.keys()).sort((a, b) => degree[b] - degree[a]) : [];
  const widths = new Float32Array(named ? n : 0);
  function writeNames(pen, first) {
    const { color, fontFamily } = getComputedStyle(document.body), taken = [];
    Object.assign(pen, { font: `12px ${fontFamily}`, textAlign: "center", lineJoin: "round", lineWidth: 3, fillStyle: color });
    pen.strokeStyle = getComputedStyle(stage).backgroundColor;
    for (const i of named ? [...first, ...ranked] : []) {
      if (taken.length === MOST_NAMES) break;
      const [x, y] = toScreen(i), text = nameOf(i).length > 24 ? `${nameOf(i).slice(0, 23)}…` : nameOf(i);
      if (x < 0 || y < 16 || x > width || y > height || faded(i)) continue;
      const half = (widths[i] ||= pen.measureText(text).width) / 2 + 6;
      if (x < half || x > width - half) continue;
      if (taken.some(([left, right, base]) => x + half > left && x - half < right && Math.abs(y - base) < 20)) continue;
      taken.push([x - half, x + half, y]);
      pen.strokeText(text, x, y - 8);
      pen.fillText(text, x, y - 8);
    }
    pen.lineWidth = 1;
  }
  function ring(pen, x, y, radius, line) {
    pen.lineWidth = line;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.stroke();
    pen.lineWidth = 1;
  }
  const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });
  const groupName = (groups, node) => (groups.of[node] < 0 ? "no label" : groups.names[groups.of[node]]);
  const share = (part, all) => `${part} of ${all}`;
  function describe(node) {
    if (!card.hidden && card.dataset.node === String(node)) return;
    card.dataset.node = node;
    const facts = document.createElement("dl");
    const fact = (name, value) => facts.append(element("dt", name), element("dd", value));
    if (labels) fact("label", groupName(labels, node));
    fact("cluster", groupName(clusters, node));
    fact("degree", degree[node].toLocaleString("en"));
    const lines = [], around = neighbours ? [...neighbours(node)] : [];
    const closest = [...nearest.subarray(node * near, node * near + near)], by = labels && labels.of[node] >= 0 ? labels : clusters;
    const alike = closest.filter((other) => by.of[other] === by.of[node]).length;
    lines.push([`By vector: ${share(alike, near)} nearest nodes have its ${by === labels ? "label" : "cluster"}`, closest]);
    if (labels && labels.of[node] >= 0 && labels.known[node]) {
      const alike = share(labels.same[node], labels.known[node]);
      lines.push([`In the graph: ${alike} neighbours have its label, ${share(clusters.same[node], clusters.known[node])} its cluster`, around]);
    } else if (clusters.known[node]) {
      lines.push([`In the graph: ${share(clusters.same[node], clusters.known[node])} neighbours are in its cluster`, around]);
    } else lines.push(["It has no neighbours in the graph", []]);
    const note = data.notes && data.notes[node] ? [element("p", data.notes[node])] : [];
    card.replaceChildren(element("h3", nameOf(node)), ...note, facts, ...lines.map(listed));
    card.hidden = false;
  }
  // A sentence that ends with nodes; on the card of a node that was clicked, each leads to its own card.
  function listed([text, nodes]) {
    const line = element("p", nodes.length ? `${text}: ` : `${text}.`), more = nodes.length - LISTED;
    nodes.slice(0, LISTED).forEach((node, place, all) => {
      const button = Object.assign(element("button", nameOf(node)), { type: "button", onclick: () => goTo(node) });
      const item = element("span", "");  // keeps the comma with the name
      item.append(button, place + 1 < all.length ? "," : more > 0 ? "" : ".");
      line.append(place ? " " : "", item);
    });
    if (more > 0) line.append(` and ${more.toLocaleString("en")} more.`);
    return line;
  }

  function under(x, y) {
    const [wantX, wantY] = toPlace(x, y), reach = REACH / view.scale;
    let best = -1, least = reach * reach;
    for (let row = cellOf(wantY - reach); row <= cellOf(wantY + reach); row++) {
      for (let cell = row * CELLS + cellOf(wantX - reach), last = row * CELLS + cellOf(wantX + reach); cell <= last; cell++) {
        for (let at = begins[cell]; at < begins[cell + 1]; at++) {
          const i = members[at], away = (px[i] - wantX) ** 2 + (py[i] - wantY) ** 2 + (faded(i) ? least : 0);
          if (away < least) { least = away; best = i; }
        }
      }
    }
    return best;
  }
  function zoom(factor, x = width / 2, y = height / 2) {
    const held = toPlace(x, y);
    view.scale = Math.max(view.whole * 0.5, Math.min(view.whole * 400, view.scale * factor));
    const moved = toPlace(x, y);
    view.x += held[0] - moved[0];
    view.y += held[1] - moved[1];
    redraw();
  }
  function goTo(node) {
    view.scale = Math.max(view.scale, 4 * view.whole);
    view.x = px[node];
    view.y = py[node];
    select(node);
  }
  function select(node) {
    kept = node;
    card.classList.toggle("kept", node >= 0);
    redraw();
  }

  const pointers = new Map();
  let dragged = 0;
  const where = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, where(event));
    if (pointers.size === 1) dragged = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = where(event), before = pointers.get(event.pointerId);
    if (!before) {
      const node = under(x, y);
      if (node !== hovered) { hovered = node; redraw(); }
      return;
    }
    if (pointers.size === 1) {
      dragged += Math.hypot(x - before[0], y - before[1]);
      view.x -= (x - before[0]) / view.scale;
      view.y += (y - before[1]) / view.scale;
      canvas.classList.add("held");
    } else {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const middle = [(x + other[0]) / 2, (y + other[1]) / 2];
      zoom(Math.hypot(x - other[0], y - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1])), ...middle);
      dragged = Infinity;
    }
    pointers.set(event.pointerId, [x, y]);
    redraw();
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(kind, (event) => {
      if (kind === "pointerup" && pointers.has(event.pointerId) && dragged < 6) {
        const node = under(...where(event));
        select(node === kept ? -1 : node);
      }
      pointers.delete(event.pointerId);
      canvas.classList.remove("held");
    });
  }
  canvas.addEventListener("pointerleave", () => { hovered = -1; redraw(); });
  canvas.addEventListener("wheel", (event) => {
    // until the map is clicked, the wheel scrolls the page
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), ...where(event));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(2, ...where(event)));
  canvas.addEventListener("keydown", (event) => {
    const step = 0.12 * width / view.scale;
    const keys = {
      ArrowLeft: () => { view.x -= step; }, ArrowRight: () => { view.x += step; },
      ArrowUp: () => { view.y += step; }, ArrowDown: () => { view.y -= step; },
      "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: fit, Escape: () => { hovered = -1; select(-1); },
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
    redraw();
  });
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      if (Number(button.dataset.zoom)) zoom(Number(button.dataset.zoom)); else { fit(); redraw(); }
    });
  }
  for (const button of document.querySelectorAll("[data-colour]")) {
    button.addEventListener("click", () => {
      mode = button.dataset.colour;
      singled = new Set();
      for (const each of document.querySelectorAll("[data-colour]")) each.setAttribute("aria-pressed", String(each === button));
      listGroups();
      paint();
    });
  }
  document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = event.target.querySelector("input"), text = field.value.trim();
    let node = -1, begun = -1;
    for (let i = 0; i < n && node < 0 && text; i++) {
      const name = nameOf(i);
      if (name === text) node = i;
      else if (begun < 0 && name.toLowerCase().startsWith(text.toLowerCase())) begun = i;
    }
    if (node < 0) node = begun;
    field.setAttribute("aria-invalid", String(node < 0));
    if (node >= 0) goTo(node);
  });

  const shapePaths = [
    "M7 1.5a5.5 5.5 0 1 0 .01 0z", "M7 1l6 11H1z", "M2 2h10v10H2z", "M7 .5L13.5 7 7 13.5.5 7z",
    "M5 1h4v4h4v4H9v4H5V9H1V5h4z", "M7 1a6 6 0 1 0 .01 0zm0 3.4a2.6 2.6 0 1 1-.01 0z",
  ];
  const vector = (name, attributes, parent) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (parent) parent.append(made);
    return made;
  };
  function listGroups() {
    const now = modes[mode];
    legend.replaceChildren();
    if (!now) { legend.append(degreeScale()); return; }
    const counts = new Map();
    for (const group of now.of) counts.set(group, (counts.get(group) || 0) + 1);
    for (const group of [...counts.keys()].sort((a, b) => (a < 0) - (b < 0) || a - b)) {
      const button = element("button", ""), icon = vector("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" });
      button.type = "button";
      button.setAttribute("aria-pressed", "false");
      vector("path", { d: shapePaths[shapeOf(group)], fill: colourOf(group) }, icon);
      button.append(icon, element("span", group < 0 ? "no label" : now.names[group]), element("small", counts.get(group).toLocaleString("en")));
      button.addEventListener("click", () => {
        if (!singled.delete(group)) singled.add(group);
        button.setAttribute("aria-pressed", String(singled.has(group)));
        paint();
      });
      legend.append(button);
    }
  }
  function degreeScale() {
    const scale = vector("svg", { class: "ramp", role: "img", "aria-label": `Colours from degree 0 to ${most}` });
    const gradient = vector("linearGradient", { id: "ramp" }, vector("defs", {}, scale));
    for (let stop = 0; stop <= 10; stop++) {
      vector("stop", { offset: `${10 * stop}%`, "stop-color": `rgb(${ramp(stop / 10).join(" ")})` }, gradient);
    }
    vector("rect", { width: "100%", height: 14, rx: 3, fill: "url(#ramp)" }, scale);
    for (let count = 1; count <= most; count *= 10) mark(count, "middle");
    if (along(most) - along(10 ** Math.floor(Math.log10(most))) > 0.12) mark(most, "end");
    return scale;
    function mark(count, anchor) {
      vector("text", { x: `${100 * along(count)}%`, y: 32, "text-anchor": anchor }, scale).textContent = count.toLocaleString("en");
    }
  }

  const renew = () => { listGroups(); paint(); };
  dark.addEventListener("change", renew);
  print.addEventListener("change", renew);
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", setUp);
  new ResizeObserver(resize).observe(stage);
  setUp();
  resize();
  listGroups();
})();
