
// Nodes by name and as a file.
// Case and accents do not count, and neither do blanks around a name.
const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().trim();

// The nodes whose names contain the text: the one that is it letter by letter, then equal names, then those that begin so.
function makeSearch(names) {
  let folded = null;
  return (text) => {
    const wanted = fold(text), found = [[], [], [], []];
    if (!wanted) return [];
    folded ??= names.map(fold);
    folded.forEach((name, node) => {
      const at = name.indexOf(wanted);
      if (at >= 0) found[names[node] === text ? 0 : name === wanted ? 1 : at === 0 ? 2 : 3].push(node);
    });
    return found.flat();
  };
}

// A cell of a CSV file. A spreadsheet runs text that starts with one of these; after an apostrophe it stays text.
function csvCell(value) {
  const text = String(value), formula = /^[=+\-@\t\r]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
  const safe = formula ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
const csvText = (rows) => rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

function saveFile(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  element("a", "", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);  // after the browser has read it
}

// What the page knows of nodes as the rows of a table; of each, more(node) stands beside its id.
function tableOf(nodes, which, heads = [], more = () => []) {
  const { labels, clusters, degree, columns, names } = nodes;
  const known = ["id", ...heads, ...(labels ? ["label"] : []), "cluster", "degree"];
  const own = columns.map(({ name }) => (known.includes(name) ? `${name} (table)` : name));
  const rows = Array.from(which, (node) => [
    names[node], ...more(node), ...(labels ? [labels.names[labels.of[node]] ?? ""] : []), clusters.numbers[clusters.of[node]], degree[node],
    ...columns.map(({ text }) => text(node)),
  ]);
  return [[...known, ...own], ...rows];
}

// A node, its nearest vectors and its neighbours in the graph, with how they belong to it.
function surroundings(nodes, node) {
  const found = new Map([[node, { cosine: 1, how: ["selected"] }]]);
  for (const [how, others] of [["nearest vector", nodes.closest(node)], ["neighbour", nodes.neighbours(node)]]) {
    for (const { node: other, cosine } of others) {
      if (!found.has(other)) found.set(other, { cosine, how: [] });
      found.get(other).how.push(how);
    }
  }
  const about = (other) => [found.get(other).how.join(" and "), Number(found.get(other).cosine.toFixed(3))];
  return tableOf(nodes, found.keys(), ["relation", "cosine"], about);
}
