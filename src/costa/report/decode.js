
// The data of the page, as packing.py and nodes.py wrote it, into arrays.
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

function readWhole(text) {
  const from = bytesOf(text), to = new Uint32Array(from.length);
  let count = 0, value = 0, scale = 1;
  for (const byte of from) {
    value += (byte & 127) * scale;
    if (byte & 128) scale *= 128;
    else { to[count++] = value; value = 0; scale = 1; }
  }
  return to.subarray(0, count);
}
const readCodes = (text) => Int32Array.from(readWhole(text), (code) => code - 1);
const readCosines = (text) => Float32Array.from(readWhole(text), (below) => 1 - below / 1000);

function readGroups(packed) {
  return packed && {
    names: packed.names, numbers: packed.numbers, of: readCodes(packed.of), none: "no label", same: readWhole(packed.same), known: readWhole(packed.known),
  };
}

// Each column has a text for every node, empty where it has no value; what the map can be coloured by is beside it.
function readColumn(packed) {
  const { name } = packed;
  if (packed.numbers) {
    const values = Float64Array.from(packed.numbers, (value) => value ?? NaN);
    return { name, numbers: values, text: (node) => (Number.isNaN(values[node]) ? "" : String(values[node])) };
  }
  if (packed.text) return { name, text: (node) => packed.text[node] };
  const groups = { names: packed.classes, of: readCodes(packed.of), none: "no value" };
  return { name, groups, text: (node) => groups.names[groups.of[node]] ?? "" };
}

// A node's neighbours in the graph with their cosines, the most similar first.
function readEdges(n, stream, cosines) {
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
  const next = first.slice(), all = new Uint32Array(first[n]), edge = new Uint32Array(first[n]);
  ends[0].forEach((a, i) => {
    const b = ends[1][i];
    edge[next[a]] = edge[next[b]] = i;
    all[next[a]++] = b;
    all[next[b]++] = a;
  });
  return (node) => {
    const around = [];
    for (let at = first[node]; at < first[node + 1]; at++) around.push({ node: all[at], cosine: cosines[edge[at]] });
    return around.sort((a, b) => b.cosine - a.cosine || a.node - b.node);
  };
}

function readNodes(data) {
  const { n, near } = data, places = new Uint16Array(bytesOf(data.points).buffer);
  const nearest = readWhole(data.nearest), similar = readCosines(data.similar);
  const names = data.ids ?? Array.from({ length: n }, (_, node) => String(node));
  const places01 = (start) => Float32Array.from({ length: n }, (_, node) => places[2 * node + start] / 65535);
  const numbers = new Map(names.map((name, node) => [name, node]));
  return {
    n, of: data.of, places, names, x: places01(0), y: places01(1), notes: data.notes,
    nodeOf: (name) => numbers.get(name) ?? -1,
    labels: readGroups(data.labels), clusters: readGroups(data.clusters), degree: readWhole(data.degree),
    columns: data.columns.map(readColumn),
    closest: (node) => Array.from({ length: near }, (_, k) => ({ node: nearest[node * near + k], cosine: similar[node * near + k] })),
    neighbours: data.edges ? readEdges(n, readWhole(data.edges), readCosines(data.tied)) : () => [],
  };
}
