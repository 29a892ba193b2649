
// The points, in WebGL; null in a browser without it.
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

function makePainter(canvas, places) {
  const gl = canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true }), n = places.length / 2;
  if (!gl) return null;
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
  }
  function attribute(name, size, type, normalised, values) {
    const where = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(where);
    gl.vertexAttribPointer(where, size, type, normalised, 0, 0);
  }
  function paint(colours, shapes, order) {
    attribute("colour", 4, gl.UNSIGNED_BYTE, true, colours);
    attribute("shape", 1, gl.UNSIGNED_BYTE, false, shapes);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, buffers.order);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.STATIC_DRAW);
  }
  // The square of the places on the canvas: how much of it a unit takes, where the middle is, and how large a point is.
  function draw(scale, middle, size) {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.uniform2f(uniforms.scale, ...scale);
    gl.uniform2f(uniforms.shift, -middle.x * scale[0], -middle.y * scale[1]);
    gl.uniform1f(uniforms.size, size);
    gl.drawElements(gl.POINTS, n, gl.UNSIGNED_INT, 0);
  }
  setUp();
  return { setUp, paint, draw };
}

// A shuffled order of the nodes: otherwise the last class would cover the others.
function shuffled(n) {
  const mixed = new Uint32Array(n);
  for (let i = 0, seed = 1; i < n; i++) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = Math.floor(seed / 4294967296 * (i + 1));
    mixed[i] = mixed[other];
    mixed[other] = i;
  }
  return mixed;
}
