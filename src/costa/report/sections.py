"""The text of the page, for readers who do not know the paper: one function for each section, returning HTML.

Whatever comes from the run or the user's graph goes through :func:`html.escape`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import quote

import numpy as np

from costa.evaluate.baselines import BASELINES, Baseline
from costa.evaluate.health import COLLAPSED, remedy
from costa.evaluate.protocols import PROTOCOLS
from costa.evaluate.samples import Sample
from costa.evaluate.scores import ProbeResult
from costa.insight.clusters import CLUSTERS
from costa.report.charts import Bar, bars, curve, strip
from costa.report.columns import MOST_BYTES, Columns
from costa.report.facts import DELTA, BiasByDegree, Facts, Sketched
from costa.report.nodes import NodeMap
from costa.runs.jobs import DEFAULT_PROTOCOLS
from costa.training import FLAT
from costa.wording import counted, duration

TITLES = {key: name.removeprefix("the ").capitalize() for key, name in reversed(BASELINES.items())}
"""The baselines as they stand in a table."""
ORIGINS = {
    "default": "the method's default",
    "graph": "chosen from the graph",
    "base": "the base of the method's presets",
    "given": "given in Python",
}
SHARED, ALIKE, LINE = 0.8, 0.99, 2.0
"""Mean cosines above which vectors share a direction, or hardly differ; effective rank below which they are a line."""

LEFT = "!'()*"
"""What JavaScript's ``encodeURIComponent``, by which ``map.js`` writes the address, leaves as it is."""


def title(facts: Facts) -> str:
    """The title of the page."""
    return f"{facts.config['dataset']}: {facts.method.title}"


def header(facts: Facts) -> str:
    """The heading, a summary, a warning if something is wrong, and four key numbers."""
    n, d = facts.shape
    source = f"its {facts.edges:,} edges and the {facts.features:,} features of each node"
    how = f"learned from {source}; no labels were used" if facts.losses else f"computed from {source} without training"
    return (
        f"<h1>{escape(title(facts))}</h1>"
        f'<p class="lead">Each of the {n:,} nodes of this graph has a vector of {d:,} numbers, {how}.</p>'
        + warning(facts)
        + _tiles(facts)
    )


def _remedy(status: str, facts: Facts) -> str:
    return _as_code(remedy(status, facts.config["settings"]))


def _as_code(sentence: str) -> str:
    """The sentence with the names of settings as code."""
    return re.sub(r"\b(?:train|loss)\.\w+", r"<code>\g<0></code>", sentence)


def warning(facts: Facts) -> str:
    """What a reader must know before any number; empty for a run that went well."""
    metrics = facts.metrics
    after = counted(metrics.epochs, "epoch")
    advice = f"What may help: {_remedy(metrics.status, facts)}."
    message = {
        "diverged": f"<strong>This run diverged.</strong> After {after} its vectors contain values that are not"
        f" numbers. They were not evaluated and cannot be used. {advice}",
        "collapsed": f"<strong>This run collapsed.</strong> After {after} {COLLAPSED},"
        f" so they do not distinguish the nodes. They were not evaluated and should not be used. {advice}",
        "interrupted": f"<strong>This run was interrupted</strong> after {after}. The page shows its state at that"
        " point; the same <code>costa train</code> command with <code>--resume</code> finishes it.",
    }.get(metrics.status)
    if message:
        return f'<p class="warning" role="alert">{message}</p>'
    if below := metrics.not_above():
        name, theirs, ours = below
        return (
            f'<p class="warning"><strong>Training did not help here.</strong> This run has {_percent(ours)}, and'
            f" {name}, without any training, {_percent(theirs)}. Try another method, more epochs or other"
            " settings.</p>"
        )
    return ""


def _tiles(facts: Facts) -> str:
    metrics, tiles = facts.metrics, []
    if metrics.probes:
        note = f"{best[0]} {_percent(best[1])}" if (best := metrics.best_baseline()) else "see below"
        tiles.append(("Accuracy", _percent(metrics.probes[0].accuracy.mean), note))
    if metrics.clustering:
        note = "{} {:.2f}".format(*best) if (best := metrics.best_baseline("nmi")) else "0 to 1"
        tiles.append(("Clustering (NMI)", f"{metrics.clustering.nmi:.2f}", note))
    if metrics.health:
        tiles.append(("Dimensions in use", f"{metrics.health.effective_rank:.0f}", f"of {facts.shape[1]:,}"))
    if facts.losses:
        epochs = counted(metrics.epochs, "epoch")
        tiles.append(("Training", duration(metrics.seconds), f"{epochs}, {metrics.device}"))
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd><b>{escape(value)}</b><span>{escape(note)}</span></dd></div>"
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{items}</dl>'


def map_of_nodes(facts: Facts) -> str:
    """The interactive map, or the reason why it is missing."""
    nodes = facts.nodes
    if nodes is None:
        why = "There is no map: vectors that are all alike, or that are not numbers, cannot be placed."
        return _section("map", "Map of the nodes", f"<p>{why}</p>")
    choices = ["labels"] * (nodes.labels is not None) + ["clusters", "degree"]
    words = {"labels": "Label", "clusters": "Cluster", "degree": "Degree"}
    buttons = "".join(
        f'<button type="button" data-colour="{key}" aria-pressed="{pressed}">{words[key]}</button>'
        for key, pressed in zip(choices, ("true", "false", "false"), strict=False)
    )
    shown = f"{len(nodes.shown):,} nodes"
    return _section(
        "map",
        "Map of the nodes",
        f"<p>Every point is a node; nodes with similar vectors lie close together. {_agreement(nodes)}</p>"
        '<div class="tools">'
        f'<div class="switch" role="group" aria-label="Colour by"><span>Colour by</span>{buttons}</div>'
        f"{_column_picker(nodes.columns)}"
        '<form id="find" role="search"><label>Find <input type="search" placeholder="part of a node id"'
        ' autocomplete="off" spellcheck="false"></label></form>'
        '<div class="switch" role="group" aria-label="Zoom"><button type="button" data-zoom="1.5"'
        ' aria-label="Zoom in">+</button><button type="button" data-zoom="0.667" aria-label="Zoom out">−</button>'
        '<button type="button" data-zoom="0">Whole map</button></div>'
        '<button type="button" id="save">Save as CSV</button><p id="found" role="status"></p></div>'
        f'<div class="stage"><canvas id="points" tabindex="0" role="application" aria-describedby="map-help"'
        f' aria-label="Map of {shown} in two dimensions; the same numbers are in embeddings.npy"></canvas>'
        '<canvas id="over" aria-hidden="true"></canvas><div id="card" role="status" hidden></div></div>'
        '<div id="legend" role="group" aria-label="Legend"></div>'
        '<noscript><p class="warning">The map needs JavaScript, which is switched off.</p></noscript>'
        '<p class="small" id="map-help">Point at a node to see its details; click to keep them, then click a name on'
        " the card to go there; the number after a name is the cosine of the two vectors. The address of the page then"
        " leads to this node. Lines lead to its neighbours in the graph, rings mark the nearest vectors. Drag to"
        " move; zoom with the buttons, by pinching, or with the wheel after a click on the map. Keys: arrows move,"
        " + and − zoom, 0 shows all, Esc clears the selection. Click legend entries to highlight their groups; what is"
        " highlighted, or matches a search, can be saved as CSV, where text that a spreadsheet would take for a"
        " formula (it starts with =, +, − or @) has an apostrophe in front."
        f" {_layout(nodes)}{_left_out(nodes.columns)}</p>",
    )


def clusters(nodes: NodeMap) -> str:
    """What each cluster is: its size, its most typical nodes, and what sets it apart."""
    found, rows = nodes.found, []
    for cluster, size in enumerate(found.sizes):
        typical = ", ".join(_link(nodes, node) for node in found.typical[cluster])
        apart = "".join(f"<li>{escape(str(trait))}</li>" for trait in nodes.traits[cluster])
        rows.append(
            f'<tr><th scope="row">cluster {cluster + 1}</th>'
            f'<td data-head="nodes">{size:,} <small>{size / nodes.of:.0%}</small></td>'
            f'<td data-head="most typical">{typical}</td>'
            f'<td data-head="what sets it apart"><ul>{apart or "<li>no column</li>"}</ul></td></tr>'
        )
    many = (
        f"as many as <code>{CLUSTERS}</code> in the run's folder has"
        if found.silhouette is None
        else f"the number with the largest mean silhouette ({found.silhouette:.2f}; near 0, there are no clear groups)"
    )
    return _section(
        "clusters",
        "What are the clusters?",
        f"<p>k-means grouped the vectors without seeing a label, into {len(found.sizes)} clusters: {many}."
        " <code>costa clusters</code> finds the same ones. The most typical nodes of a cluster are those whose vectors"
        " are nearest to its centre; a click shows them on the map.</p>"
        '<table class="clusters"><thead><tr><th scope="col">cluster</th><th scope="col">nodes</th>'
        '<th scope="col">most typical</th><th scope="col">what sets it apart</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
        '<p class="small">Numbers are compared by their medians, or by their means if the medians agree; words by the'
        " share of nodes that have them. Differences that are small, or that chance may explain, are left out.</p>",
    )


def _link(nodes: NodeMap, node: int) -> str:
    """The name of a node, which leads to it on the map."""
    name = str(node) if nodes.ids is None else nodes.ids[int(np.searchsorted(nodes.shown, node))]
    address = quote(name, safe=LEFT)
    return f'<a href="#id={escape(address)}">{escape(name)}</a>'


def _column_picker(columns: Columns) -> str:
    """A list of the columns that the map can be coloured by; empty if there is none."""
    options = "".join(
        f'<option value="{place}">{escape(column.name)}</option>'
        for place, column in enumerate(columns.kept)
        if column.colours
    )
    if not options:
        return ""
    return f'<select id="column" aria-label="Colour by a column"><option value="">a column …</option>{options}</select>'


def _left_out(columns: Columns) -> str:
    """Which columns the page has not, and why."""
    if not columns.left_out:
        return ""
    names = ", ".join(map(escape, columns.left_out))
    return (
        f" All columns together may take {MOST_BYTES / 1e6:.0f} MB of the page; these did not fit and are left out:"
        f" {names}."
    )


def _agreement(nodes: NodeMap) -> str:
    """How often a node's nearest vectors and its neighbours have its label."""
    if nodes.labels is None:
        return "The graph has no labels, so colours show clusters that k-means found in the vectors."
    of = nodes.labels.of
    pairs = (of[:, None] >= 0) & (of[nodes.nearest] >= 0)
    if not pairs.any() or not nodes.labels.known.sum():
        return ""
    near = float((of[nodes.nearest] == of[:, None])[pairs].mean())
    linked = nodes.labels.same.sum() / nodes.labels.known.sum()
    return (
        f"A node's nearest vectors have its label in {near:.0%} of cases, its neighbours in the graph in {linked:.0%}."
    )


def _layout(nodes: NodeMap) -> str:
    kind, sample = nodes.layout.kind, len(nodes.shown) < nodes.of
    how = {
        "PCA": "The two axes are the vectors' first two principal components.",
        "t-SNE": "Positions come from t-SNE: nearby nodes are similar, while distances between far groups and the sizes"
        " of groups mean little.",
    }.get(
        kind,
        f"Positions come from t-SNE of {nodes.layout.anchors:,} nodes drawn at random; each other node lies among those"
        " of them with the nearest vectors. Nearby nodes are similar, while distances between far groups and the sizes"
        " of groups mean little.",
    )
    if sample:
        shown = f"{len(nodes.shown):,} of {nodes.of:,} nodes"
        how += (
            f" The map shows {shown}: the clusters' typical ones, and others drawn at random; neighbours are counted in"
            " the whole graph."
        )
    if nodes.edges is None:
        how += " The graph has too many edges to draw them here."
    if nodes.reduced:
        how += " Nearest vectors are those by the first 256 principal components."
    return how


def quality(facts: Facts) -> str:
    """The probe and the clustering, against the baselines."""
    metrics = facts.metrics
    if not metrics.probes:
        why = (
            f"The vectors were not evaluated, because the run {metrics.status}."
            if metrics.status in ("diverged", "collapsed")
            else "The vectors were not evaluated on the graph's labels (<code>costa probe RUN</code> does that)."
            if facts.nodes is not None and facts.nodes.labels is not None
            else "The graph has no labels of two classes, so the vectors cannot be evaluated; the sections below need"
            " no labels."
        )
        return _section("quality", "How good are the vectors?", f"<p>{why}</p>")
    baselines = metrics.baselines or {}
    tables = "".join(_probe_table(probe, baselines) for probe in metrics.probes)
    html = (
        "<p>A simple classifier (logistic regression) sees the vectors and the labels of a few nodes, and predicts the"
        " labels of the others; how often it is right is the accuracy. Each split (a dot) draws its own training and"
        " test nodes." + _sample(metrics.sample) + "</p>" + tables
    )
    if baselines:
        html += (
            '<p class="small">The untrained network is a GCN with random weights. Raw features are the nodes\' features'
            " without the graph, diffused features are the same averaged along the edges, and hops put the features"
            " beside their averages over one edge and more. A method that stays below them has learned nothing that a"
            f" classifier can use. All numbers are means under {DEFAULT_PROTOCOLS[0]}.</p>"
        )
    clustering = metrics.clustering
    if clustering:
        rows = [Bar("This run", max(clustering.nmi, 0), f"{clustering.nmi:.3f}")]
        rows += [
            Bar(TITLES[key], max(baselines[key].nmi, 0), f"{baselines[key].nmi:.3f}", kind="other")
            for key in TITLES
            if key in baselines
        ]
        html += bars(rows, caption="Clusters against labels: normalised mutual information", heads=("", "NMI"))
        html += (
            '<p class="small">k-means makes as many groups as there are classes, without seeing a label; 0 means its'
            " groups have nothing to do with the labels, 1 that they are the same. Adjusted Rand index of this run:"
            f" {clustering.ari:.3f}.</p>"
        )
    return _section("quality", "How good are the vectors?", html)


def _sample(sample: Sample | None) -> str:
    return f" All scores are those of {sample}, drawn at random." if sample else ""


def _probe_table(probe: ProbeResult, baselines: Mapping[str, Baseline]) -> str:
    score, protocol = probe.accuracy, probe.protocol
    splits = score.per_split
    spread = f" ± {100 * score.std:.1f}" if len(splits) > 1 else ""
    rows = [Bar("This run", score.mean, f"{100 * score.mean:.1f}{spread} %", splits)]
    if protocol == DEFAULT_PROTOCOLS[0]:
        rows += [
            Bar(TITLES[key], baselines[key].accuracy, _percent(baselines[key].accuracy), kind="other")
            for key in TITLES
            if key in baselines
        ]
    about = PROTOCOLS[protocol].description if protocol in PROTOCOLS else ""
    number = counted(len(splits), "split")
    caption = f"{protocol}: {about}; {number}"
    few = probe.too_few()
    note = f'<p class="small">Note: {few}.</p>' if few else ""
    return bars(rows, caption=caption, heads=("", "accuracy")) + note


def training(facts: Facts) -> str:
    """The loss, epoch by epoch."""
    points = [(float(epoch), loss) for epoch, loss in facts.losses if math.isfinite(loss)]
    if not facts.losses:
        return _section("training", "Training", "<p>This method does not train by minimising a loss.</p>")
    lost = len(facts.losses) - len(points)
    note = f" In {counted(lost, 'epoch')} the loss was not a number." if lost else ""
    if len(points) < 2:
        return _section("training", "Training", f"<p>A curve needs at least two epochs.{note}</p>")
    (first, began), (last, ended) = points[0], points[-1]
    course = f"goes from {began:.4g} in epoch {first:.0f} to {ended:.4g} in epoch {last:.0f}."
    drawn = curve(
        points, alt=f"The loss {course}", across="epoch", up="loss", say=lambda x, y: f"epoch {x:.0f}: loss {y:.4f}"
    )
    return _section(
        "training",
        "Training",
        f"<p>Training minimises the loss. It {course}{note} Its value cannot be compared between methods or settings;"
        f" what counts is that it falls and settles.</p>{drawn}",
    )


def health(facts: Facts) -> str:
    """Whether the vectors collapsed."""
    heading, spread, d = "Did the vectors collapse?", facts.metrics.health, facts.shape[1]
    if not spread:
        return _section("health", heading, "<p>They diverged: they contain values that are not numbers.</p>")
    rank, cosine = spread.effective_rank, spread.mean_cosine
    if facts.metrics.status == "collapsed":
        verdict = f"Yes: {COLLAPSED}."
    elif rank < LINE:
        verdict = f"Nearly: they lie along a single line. What may help: {_remedy('collapsed', facts)}."
    elif cosine > ALIKE:
        verdict = "Almost: they differ only a little around one common direction."
    elif cosine > SHARED:
        verdict = "No, but they share one strong direction; what distinguishes the nodes lies around it."
    else:
        verdict = "No: they point in different directions."
    text = (
        f"<p>{verdict} Two vectors have a cosine of {cosine:.2f} on average (1 means the same direction), and the"
        f" vectors spread as if over {rank:.1f} equally used dimensions out of {d:,} (the effective rank).</p>"
    )
    if facts.metrics.watch is not None:
        text += f"<p>{_as_code(str(facts.metrics.watch)).capitalize()}.</p>"
    if facts.metrics.loss_fell is False:
        text += f"<p>{_as_code(FLAT).capitalize()}.</p>"
    if len(facts.spectrum) > 1:
        kept = [(float(place), share) for place, share in enumerate(facts.spectrum, 1) if share > 1e-7]
        alt = f"Share of each direction, from {kept[0][1]:.1%} for the largest down to {kept[-1][1]:.2g}."
        text += curve(
            kept,
            alt=alt,
            across="direction, the strongest first",
            up="share of the spread (logarithmic)",
            say=lambda x, y: f"direction {x:.0f}: {y:.2%}",
            log=True,
            marks=[(rank, "effective rank")] if kept[0][0] < rank < kept[-1][0] else [],
        )
        text += (
            '<p class="small">A steep drop means that few directions carry everything; a slow descent, that many'
            " do.</p>"
        )
    return _section("health", heading, text)


def sketch(sketched: Sketched) -> str:
    """How well the sketch keeps the covariance, and what is guaranteed."""
    k, n, errors = sketched.rows, sketched.nodes, sorted(sketched.errors)
    middle = errors[len(errors) // 2]
    lines = [(sketched.proved, f"proved: {sketched.proved:.3f}", "bound")]
    if sketched.stated is not None:
        lines.append((sketched.stated, f"the paper's lemma: {sketched.stated:.3f}", "bound second"))
    above = sum(error > sketched.proved for error in errors)
    number = counted(len(errors), "draw")
    alt = f"Error of {number}: {errors[0]:.4f} to {errors[-1]:.4f}, the proved bound at {sketched.proved:.4f}."
    promise = (
        "The line marks what it cannot exceed"
        if sketched.kind == "svd"
        else f"The lines mark what at most {DELTA:.0%} of draws may exceed"
        if sketched.stated is not None
        else f"The line marks what at most {DELTA:.0%} of draws may exceed"
    )
    noise = " The noise that this run also adds is left out here." if sketched.noise else ""
    text = (
        f"<p>In each step COSTA mixes {n:,} vectors into {k:,} by a fresh <em>sketch</em> ({sketched.kind}) and"
        " learns from those. That works as long as the sketch keeps how the vectors' columns vary together (their"
        f" covariance). In {number} of this run's sketch on the final vectors, the covariance is off by {middle:.2%} of"
        f" its total in the median and {errors[-1]:.2%} in the worst case.{noise}</p>"
    )
    text += strip(
        errors,
        lines,
        alt=alt,
        across="error of the covariance, as a share of its total (ε)",
        say="one draw:",
    )
    text += f'<p class="small">{promise}; {above} of these {len(errors)} did.</p>'
    return _section("sketch", "Does the sketch keep what matters?", text)


def graph(facts: Facts) -> str:
    """Degrees, and how perturbing the graph would move vectors by degree."""
    most = max(count for _, count in facts.degrees)
    rows = [Bar(name, count / most, f"{count:,}", kind="plain") for name, count in facts.degrees]
    text = (
        "<p>The degree of a node is its number of neighbours. Half the nodes have"
        f" {facts.median_degree:.0f} or fewer.</p>"
        + bars(rows, caption="Nodes of each degree", heads=("degree", "nodes"))
    )
    if facts.distortion is not None and len(facts.distortion.bins) > 1:
        text += _distortion(facts.distortion)
    if facts.config["settings"].get("encoder.kind") == "hops":
        text += (
            "<p>Features went along the edges once, before training, which reads no edge"
            " (<code>encoder.kind = hops</code>): there is no perturbation of the graph that could bias vectors.</p>"
        )
    return _section("graph", "The graph", text)


def _distortion(distortion: BiasByDegree) -> str:
    parts = [f"dropping {distortion.edge_rate:.0%} of the edges"] * bool(distortion.edge_rate)
    parts += [f"masking {distortion.mask_rate:.0%} of the features"] * bool(distortion.mask_rate)
    who = "This run was trained while" if distortion.as_trained else "Many methods perturb the graph, for example by"
    most = max(entry["quartiles"][1] for entry in distortion.bins) or 1.0
    rows = [
        Bar(entry["degree"], entry["quartiles"][1] / most, f"{entry['quartiles'][1]:.1%}", kind="plain")
        for entry in distortion.bins
    ]
    rho = distortion.correlation
    trend = (
        "It hardly depends on the degree"
        if math.isnan(rho) or abs(rho) < 0.1
        else f"Nodes with {'few' if rho < 0 else 'many'} neighbours are moved further"
    )
    rank = "" if math.isnan(rho) else f" (rank correlation {rho:+.2f})".replace("-", "−")
    return (
        f"<h3>What perturbing the graph does</h3><p>{who} {' and '.join(parts)} at random. On average that does not"
        " cancel out: it moves a node's vector systematically, by the share of its length shown here. That is the"
        f" bias of the perturbation. {trend}{rank}.</p>"
        + bars(rows, caption=f"Median bias by degree, {distortion.draws} draws", heads=("degree", "bias"))
    )


def settings(facts: Facts) -> str:
    """What was run, with every setting and where it came from, and the versions."""
    config, metrics = facts.config, facts.metrics
    others = metrics.trained_together - 1
    shared = f", together with {counted(others, 'other run')}" if others > 0 else ""
    memory = metrics.peak_memory_bytes
    pairs = [
        ("Method", f"{facts.method.title} ({config['method']})"),
        ("From", facts.method.citation()),
        ("Graph", facts.graph),
        ("Seed", str(config["seed"])),
        ("Status", metrics.status),
        ("Epochs", f"{metrics.epochs:,}"),
        ("Time", duration(metrics.seconds) + shared),
        ("Device", metrics.device),
        ("Peak memory", f"{memory / 2**20:,.0f} MiB" if memory else "not known"),
        ("Source", metrics.commit or "an installed package"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in metrics.versions.items())),
    ]
    about = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    origins = config.get("origins", {})
    rows = "".join(
        f'<tr><th scope="row"><code>{escape(key)}</code></th><td>{escape(_value(value))}</td>'
        f"<td>{escape(ORIGINS.get(origins.get(key, ''), origins.get(key, 'not known')))}</td></tr>"
        for key, value in config["settings"].items()
    )
    table = (
        '<table class="settings"><caption>Every setting, and where it came from</caption><thead><tr>'
        '<th scope="col">setting</th><th scope="col">value</th><th scope="col">from</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    return _section("run", "What was run", f'<dl class="about">{about}</dl>{table}')


def _section(name: str, heading: str, content: str) -> str:
    head = f'<h2 id="{name}-heading">{heading}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-heading">{head}{content}</section>'


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
