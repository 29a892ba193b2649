
// The card of one node: its values, its nearest vectors and its neighbours.
const LISTED = 8, GLIMPSE = 6;

const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const nameOfGroup = (groups, node) => groups.names[groups.of[node]] ?? groups.none;

// "3 of 4 neighbours have its label"; those without a label are counted beside, neither as right nor as wrong.
function labelShare(same, known, all, word) {
  const rest = all - known;
  if (!known) return `${all === 1 ? `its ${word} is` : `its ${plural(all, word)} are all`} unlabelled`;
  const verb = known === 1 ? "has" : "have";
  if (!rest) return `${same} of ${plural(known, word)} ${verb} its label`;
  return `${same} of ${plural(known, `labelled ${word}`)} ${verb} its label, ${rest.toLocaleString("en")} ${rest === 1 ? "is" : "are"} unlabelled`;
}
// "3 red, 1 blue, 2 unlabelled", the most common first.
function tally(labels, nodes) {
  const counts = new Map();
  for (const node of nodes) counts.set(labels.of[node], (counts.get(labels.of[node]) || 0) + 1);
  const order = [...counts].sort(([a, many], [b, few]) => (a < 0) - (b < 0) || few - many);
  return order.map(([label, count]) => `${count} ${label < 0 ? "unlabelled" : labels.names[label]}`).join(", ");
}
function byVector({ labels, clusters }, node, closest) {
  const others = closest.map((each) => each.node), all = others.length;
  const same = (groups) => others.filter((other) => groups.of[other] === groups.of[node]).length;
  if (labels && labels.of[node] >= 0) {
    const known = others.filter((other) => labels.of[other] >= 0).length;
    return `By vector: ${labelShare(same(labels), known, all, "nearest node")}`;
  }
  const among = `By vector: ${same(clusters)} of ${plural(all, "nearest node")} ${all === 1 ? "is" : "are"} in its cluster`;
  return labels ? `${among}; their labels: ${tally(labels, others)}` : among;
}
function inGraph({ labels, clusters, degree }, node) {
  const all = degree[node], cluster = `${clusters.same[node]} of ${plural(all, "neighbour")} ${all === 1 ? "is" : "are"} in its cluster`;
  if (!all) return "It has no neighbours in the graph";
  if (!labels || labels.of[node] < 0) return `In the graph: ${cluster}`;
  return `In the graph: ${labelShare(labels.same[node], labels.known[node], all, "neighbour")}; ${cluster}`;
}

// A sentence that ends with nodes and their cosines; each leads to its own card.
function nodeList(nodes, text, others, total, goTo) {
  const line = element("p", others.length ? `${text}: ` : `${text}.`), listed = others.slice(0, LISTED), more = total - listed.length;
  listed.forEach(({ node, cosine }, place) => {
    const button = element("button", nodes.names[node], { type: "button" }), item = element("span", "");
    button.addEventListener("click", () => goTo(node));
    const end = place + 1 < listed.length ? "," : more > 0 ? "" : ".";  // stays with the name
    item.append(button, " ", element("small", cosine.toFixed(2)), end);
    line.append(place ? " " : "", item);
  });
  if (others.length && more > 0) line.append(` and ${more.toLocaleString("en")} more.`);
  return line;
}

function values(nodes, node, kept) {
  const list = document.createElement("dl"), { labels, clusters, degree } = nodes;
  const fact = (name, value) => list.append(element("dt", name), element("dd", value));
  if (labels) fact("label", nameOfGroup(labels, node));
  fact("cluster", nameOfGroup(clusters, node));
  fact("degree", degree[node].toLocaleString("en"));
  const shown = kept ? nodes.columns : nodes.columns.slice(0, GLIMPSE), hidden = nodes.columns.length - shown.length;
  for (const { name, text } of shown) fact(name, text(node) || "–");
  return hidden ? [list, element("p", `Click the node to see ${plural(hidden, "more column")}.`)] : [list];
}

// The content of the card; one that is kept can be scrolled, closed and saved.
function cardOf(nodes, node, kept, { goTo, close, save }) {
  const note = nodes.notes && nodes.notes[node] ? [element("p", nodes.notes[node])] : [];
  const closest = nodes.closest(node), around = nodes.neighbours(node);
  const lists = [
    nodeList(nodes, byVector(nodes, node, closest), closest, closest.length, goTo),
    nodeList(nodes, inGraph(nodes, node), around, nodes.degree[node], goTo),
  ];
  const content = [element("h3", nodes.names[node]), ...note, ...values(nodes, node, kept), ...lists];
  if (!kept) return content;
  const cross = element("button", "×", { type: "button", className: "close", title: "Close" });
  cross.setAttribute("aria-label", "Close the card");
  cross.addEventListener("click", close);
  const file = element("p", "", { className: "file" }), saving = element("button", "Save these nodes as CSV", { type: "button" });
  saving.addEventListener("click", save);
  file.append(saving);
  return [cross, ...content, file];
}
