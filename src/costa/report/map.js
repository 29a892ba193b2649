
// The map of the nodes: points in WebGL, what belongs to one node on a second canvas above them.
(() => {
  const data = JSON.parse(document.getElementById("nodes").textContent);
  const canvas = document.getElementById("points");
  if (!data || !canvas) return;

  const REACH = 14, CELLS = 128, MOST_NAMES = 60, NARROW = 600, APART = 34, RING = 8;
  const nodes = readNodes(data), { n, x: px, y: py, degree, names } = nodes, search = makeSearch(names);
  const byId = (id) => document.getElementById(id);
  const over = byId("over"), card = byId("card"), legend = byId("legend"), told = byId("found"), saver = byId("save");
  const field = document.querySelector("#find input"), picker = byId("column"), stage = canvas.parentElement;

  const painter = makePainter(canvas, nodes.places);
  if (!painter) {
    const why = "This browser cannot draw the map: it has no WebGL 2. The rest of the page works.";
    stage.replaceChildren(element("p", why, { className: "none" }));
    return;
  }
  let hovered = -1, kept = -1, wanted = false, width = 1, height = 1, ratio = 1;
  const view = { x: 0.5, y: 0.5, scale: 1, whole: 1 };

  // A grid over the square finds the node under the pointer.
  const cellOf = (x) => Math.max(0, Math.min(CELLS - 1, Math.floor(x * CELLS)));
  const begins = new Uint32Array(CELLS * CELLS + 1), members = new Uint32Array(n);
  for (let i = 0; i < n; i++) begins[cellOf(py[i]) * CELLS + cellOf(px[i]) + 1]++;
  for (let cell = 0; cell < CELLS * CELLS; cell++) begins[cell + 1] += begins[cell];
  const filled = begins.slice();
  for (let i = 0; i < n; i++) members[filled[cellOf(py[i]) * CELLS + cellOf(px[i])]++] = i;

  // Colours, and what is faded: groups that are not singled out in the legend, and nodes that are not searched for.
  const mixed = shuffled(n), shown = new Uint8Array(n), singled = new Set();
  let mode, matched = null;

  function modeOf(name) {
    if (name === "labels" || name === "clusters") return { groups: nodes[name] };
    if (name === "degree") return { scale: degreeScale(degree) };
    const { name: title, numbers, groups } = nodes.columns[Number(name)];
    return numbers ? { scale: numberScale(title, numbers) } : { groups };
  }
  function colourBy(name) {
    mode = modeOf(name);
    singled.clear();
    for (const each of document.querySelectorAll("[data-colour]")) each.setAttribute("aria-pressed", String(each.dataset.colour === name));
    if (picker) picker.value = /^\d+$/.test(name) ? name : "";
    listColours();
    paint();
  }
  function listColours() {
    legend.replaceChildren(...(mode.groups ? groupLegend(mode.groups, singled, singleOut) : scaleLegend(mode.scale)));
  }
  function singleOut(group) {
    if (!singled.delete(group)) singled.add(group);
    paint();
  }
  function paint() {
    const { groups, scale } = mode, colours = new Uint8Array(4 * n), shapes = new Uint8Array(n), memo = new Map();
    const rgbOf = (group) => memo.get(group) ?? memo.set(group, hexToRgb(colourOf(group))).get(group);
    const ramp = scale && Array.from({ length: 256 }, (_, step) => rampAt(step / 255));
    let visible = 0;
    for (let i = 0; i < n; i++) {
      const group = groups ? groups.of[i] : Number.isNaN(scale.at[i]) ? -1 : 0;
      shown[i] = (!singled.size || singled.has(group)) && (!matched || matched.has(i));
      visible += shown[i];
      if (groups) shapes[i] = shapeOf(group);
      colours.set(groups || group < 0 ? rgbOf(group) : ramp[Math.round(255 * scale.at[i])], 4 * i);
      colours[4 * i + 3] = !shown[i] ? 18 : group < 0 ? 110 : 225;
    }
    const order = new Uint32Array(n);
    order.set(mixed.filter((i) => !shown[i]));
    order.set(mixed.filter((i) => shown[i]), n - visible);
    painter.paint(colours, shapes, order);
    saver.textContent = `Save ${plural(visible, "node")} as CSV`;
    redraw();
  }

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
    const before = view.scale / view.whole, centre = [view.x, view.y];
    [width, height, ratio] = [Math.max(1, stage.clientWidth), Math.max(1, stage.clientHeight), window.devicePixelRatio || 1];
    if (!stage.getBoundingClientRect().width) return;
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
    const many = mode.groups && mode.groups.names.length > 8;  // shapes need more space than colours
    painter.draw([2 * view.scale / width, 2 * view.scale / height], view, many ? 1.15 * size : size);
    point(kept >= 0 ? kept : hovered);
  }

  // One node: lines to its neighbours, rings around the nearest vectors, and the card.
  function point(node) {
    const pen = over.getContext("2d"), closest = node < 0 ? [] : nodes.closest(node).map((each) => each.node);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    writeNames(pen, node, closest);
    if (node < 0) { card.hidden = true; return; }
    const [x, y] = toScreen(node);
    pen.strokeStyle = pen.fillStyle = getComputedStyle(document.body).color;
    pen.globalAlpha = 0.45;
    pen.beginPath();
    for (const { node: other } of nodes.neighbours(node)) { pen.moveTo(x, y); pen.lineTo(...toScreen(other)); }
    pen.stroke();
    pen.globalAlpha = 1;
    for (const other of closest) ring(pen, ...toScreen(other), 6, 1.5);
    ring(pen, x, y, RING, 3);
    describe(node);
    placeCard(node, x, y);
  }
  function ring(pen, x, y, radius, line) {
    pen.lineWidth = line;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.stroke();
    pen.lineWidth = 1;
  }
  // Names, as on a road map: those of the chosen node's nearest, then by degree, each where there is space. The chosen
  // one's is on the card, which would cut it off here; no other name may stand in its place.
  const named = data.ids && names.some((id) => Number.isNaN(Number(id)));
  const ranked = named ? Uint32Array.from(degree.keys()).sort((a, b) => degree[b] - degree[a]) : [];
  const widths = new Float32Array(named ? n : 0);
  function writeNames(pen, chosen, first) {
    const { color, fontFamily } = getComputedStyle(document.body), taken = [];
    Object.assign(pen, { font: `12px ${fontFamily}`, textAlign: "center", lineJoin: "round", lineWidth: 3, fillStyle: color });
    pen.strokeStyle = getComputedStyle(stage).backgroundColor;
    if (chosen >= 0) { const [x, y] = toScreen(chosen); taken.push([x - RING, x + RING, y + 14]); }
    for (const i of named ? [...first, ...ranked] : []) {
      if (taken.length === MOST_NAMES) break;
      const [x, y] = toScreen(i), text = names[i].length > 24 ? `${names[i].slice(0, 23)}…` : names[i];
      if (x < 0 || y < 16 || x > width || y > height || !shown[i] || i === chosen) continue;
      const half = (widths[i] ||= pen.measureText(text).width) / 2 + 6;
      if (x < half || x > width - half) continue;
      if (taken.some(([left, right, base]) => x + half > left && x - half < right && Math.abs(y - base) < 20)) continue;
      taken.push([x - half, x + half, y]);
      pen.strokeText(text, x, y - 8);
      pen.fillText(text, x, y - 8);
    }
    pen.lineWidth = 1;
  }

  function describe(node) {
    const what = `${node} ${node === kept}`;
    if (!card.hidden && card.dataset.what === what) return;
    const focused = card.contains(document.activeElement);
    card.dataset.what = what;
    card.classList.toggle("kept", node === kept);
    card.replaceChildren(...cardOf(nodes, node, node === kept, {
      goTo, close: () => { select(-1); canvas.focus(); }, save: () => saveFile("neighbours.csv", csvText(surroundings(nodes, node))),
    }));
    card.hidden = false;
    card.scrollTop = 0;
    if (focused) card.querySelector("button")?.focus();
  }
  // Beside the node, outwards if there is space, so that the card hides little of the map; on a narrow map above or below.
  function placeCard(node, x, y) {
    const narrow = width < NARROW, below = y < height / 2, inside = Math.max(0, Math.min(height, y));
    card.classList.toggle("sheet", narrow);
    card.style.maxHeight = `${narrow ? (below ? height - inside : inside) - APART : height - 12}px`;
    if (narrow) {
      Object.assign(card.style, { left: "8px", right: "8px", top: below ? "auto" : "8px", bottom: below ? "8px" : "auto" });
      return;
    }
    const sides = [x + 18, x - 18 - card.offsetWidth], fits = (at) => at >= 6 && at + card.offsetWidth <= width - 6;
    const left = (px[node] < 0.5 ? sides.reverse() : sides).find(fits) ?? sides[0];
    const clamp = (value, room) => `${Math.max(6, Math.min(room - 6, value))}px`;
    card.style.right = card.style.bottom = "auto";
    card.style.left = clamp(left, width - card.offsetWidth);
    card.style.top = clamp(y - card.offsetHeight / 2, height - card.offsetHeight);
  }

  function under(x, y) {
    const [wantX, wantY] = toPlace(x, y), reach = REACH / view.scale;
    let best = -1, least = reach * reach;
    for (let row = cellOf(wantY - reach); row <= cellOf(wantY + reach); row++) {
      for (let cell = row * CELLS + cellOf(wantX - reach), last = row * CELLS + cellOf(wantX + reach); cell <= last; cell++) {
        for (let at = begins[cell]; at < begins[cell + 1]; at++) {
          const i = members[at], away = (px[i] - wantX) ** 2 + (py[i] - wantY) ** 2 + (shown[i] ? 0 : least);
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

  // The selected node, which the address names.
  function keep(node) {
    kept = node;
    redraw();
  }
  function select(node) {
    keep(node);
    const address = node < 0 ? "" : `#id=${encodeURIComponent(names[node])}`;
    if (address === location.hash || (node < 0 && !location.hash.startsWith("#id="))) return;
    try {
      history.pushState(null, "", address || location.pathname + location.search);
    } catch { /* a page inside another has no address of its own */ }
  }
  function goTo(node) {
    view.scale = Math.max(view.scale, 4 * view.whole);
    view.x = px[node];
    view.y = py[node] - (width < NARROW ? 0.3 * height / view.scale : 0);  // above the card
    select(node);
  }
  function followAddress() {
    const linked = /^#id=(.*)$/s.exec(location.hash);
    if (!linked) { keep(-1); return; }
    let name = linked[1];
    try { name = decodeURIComponent(name); } catch { /* as it stands there */ }
    const node = nodes.nodeOf(name);
    if (node < 0) { keep(-1); tell(`No node${here} has the id “${name}”.`); return; }
    goTo(node);
    stage.scrollIntoView({ block: "nearest" });
  }
  const tell = (text) => { told.textContent = text; };
  const here = nodes.of > n ? ` among the ${n.toLocaleString("en")} shown` : "";

  // Searching: while one types all nodes that match stand out, and Enter goes from one to the next.
  let found = [], place = -1;
  function look() {
    found = search(field.value);
    place = -1;
    const text = field.value.trim(), nothing = text && !found.length;
    field.setAttribute("aria-invalid", String(Boolean(nothing)));
    matched = found.length > 1 ? new Set(found) : null;
    tell(nothing ? `No node${here} has “${text}” in its id.` : found.length > 1 ? `${plural(found.length, "node")} match: Enter goes to the next.` : "");
    paint();
  }
  field.addEventListener("input", look);
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!found.length) { look(); if (!found.length) return; }
    place = (place + 1) % found.length;
    if (matched && fold(names[found[0]]) === fold(field.value)) {  // a whole id: what else has it in its own is not meant
      matched = null;
      paint();
    }
    if (found.length > 1) tell(`${(place + 1).toLocaleString("en")} of ${plural(found.length, "node")} that match.`);
    goTo(found[place]);
  });
  saver.addEventListener("click", () => saveFile("nodes.csv", csvText(tableOf(nodes, [...shown.keys()].filter((i) => shown[i])))));

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
    button.addEventListener("click", () => colourBy(button.dataset.colour));
  }
  if (picker) picker.addEventListener("change", () => { if (picker.value) colourBy(picker.value); });

  const renew = () => { listColours(); paint(); };
  darkMode.addEventListener("change", renew);
  onPaper.addEventListener("change", renew);
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => { painter.setUp(); paint(); });
  new ResizeObserver(resize).observe(stage);
  resize();
  colourBy(nodes.labels ? "labels" : "clusters");
  addEventListener("hashchange", followAddress);
  if (location.hash.startsWith("#id=")) followAddress();
})();
