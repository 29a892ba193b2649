"""The text of the page, for someone who never read the paper: one function a section, HTML out.

Whatever comes from the run or the user's graph goes through :func:`html.escape`.
"""

from __future__ import annotations

import math
import re
from html import escape
from typing import Any

from costa.floors import highest
from costa.health import remedy
from costa.probe import PROTOCOLS, too_few
from costa.report.charts import Bar, bars, curve, strip
from costa.report.facts import DELTA, Distortion, Facts, Sketched
from costa.report.nodes import NodeMap
from costa.runs import DEFAULT_PROTOCOLS
from costa.wording import counted

FLOORS = {"untrained": "Untrained network", "diffused": "Diffused features", "raw": "Raw features"}
ORIGINS = {
    "default": "the method's default",
    "graph": "chosen from the graph",
    "given": "given in Python",
}
SHARED, ALIKE, LINE = 0.8, 0.99, 2.0
"""Above these mean cosines vectors share a direction, or hardly differ; below this effective rank they are a line."""


def title(facts: Facts) -> str:
    """What the page is about."""
    return f"{facts.config['dataset']}: {facts.method.title}"


def header(facts: Facts) -> str:
    """The heading, what this is in a sentence, what is wrong where something is, and four figures."""
    n, d = facts.shape
    source = f"its {facts.edges:,} edges and the {facts.features:,} features of each node"
    how = (
        f"learned from {source}; no label was looked at"
        if facts.losses
        else f"made from {source}, not trained by a loss"
    )
    return (
        f"<h1>{escape(title(facts))}</h1>"
        f'<p class="lead">Each of the {n:,} nodes of this graph has a vector of {d:,} numbers, {how}.</p>'
        + warning(facts)
        + _tiles(facts)
    )


def _remedy(status: str, facts: Facts) -> str:
    return re.sub(r"\b(?:train|loss)\.\w+", r"<code>\g<0></code>", remedy(status, facts.config["settings"]))


def warning(facts: Facts) -> str:
    """What a reader must know before any number; nothing for a run that went well."""
    metrics = facts.metrics
    after = counted(metrics["epochs"], "epoch")
    advice = f"What may help: {_remedy(metrics['status'], facts)}."
    told = {
        "diverged": f"<strong>This run diverged.</strong> After {after} its vectors are no longer numbers. They were"
        f" not judged and cannot be used. {advice}",
        "collapsed": f"<strong>This run collapsed.</strong> After {after} all vectors point the same way, or are"
        f" zero, so they no longer tell one node from another. They were not judged and should not be used. {advice}",
        "interrupted": f"<strong>This run was interrupted</strong> after {after}. What follows is what it had by then;"
        " the same <code>costa train</code> command with <code>--resume</code> finishes it.",
    }.get(metrics["status"])
    if told:
        return f'<p class="warning" role="alert">{told}</p>'
    floor = metrics["floor"]
    if floor and metrics["method"] not in floor and metrics["probes"]:
        ours, (name, theirs) = metrics["probes"][0]["accuracy"]["mean"], highest(floor)
        if ours <= theirs:
            return (
                f'<p class="warning"><strong>Training did not help here.</strong> This run has {_percent(ours)}, and'
                f" {name}, without any training, {_percent(theirs)}. Try another method, more epochs or other"
                " settings.</p>"
            )
    return ""


def _tiles(facts: Facts) -> str:
    metrics, tiles = facts.metrics, []
    if metrics["probes"]:
        score = metrics["probes"][0]["accuracy"]
        floor = metrics["floor"]
        beside = "see below"
        if floor:
            name, theirs = highest(floor)
            beside = f"{name} {_percent(theirs)}"
        tiles.append(("Accuracy", _percent(score["mean"]), beside))
    if metrics["clustering"]:
        beside = "{} {:.2f}".format(*highest(metrics["floor"], "nmi")) if metrics["floor"] else "0 to 1"
        tiles.append(("Clustering (NMI)", f"{metrics['clustering']['nmi']:.2f}", beside))
    alive = metrics.get("health")
    if alive:
        tiles.append(("Dimensions in use", f"{alive['effective_rank']:.0f}", f"of {facts.shape[1]:,}"))
    if facts.losses:
        epochs = f"{metrics['epochs']:,} epoch{'' if metrics['epochs'] == 1 else 's'}"
        tiles.append(("Training", _duration(metrics["seconds"]), f"{epochs}, {metrics['device']}"))
    items = "".join(
        f"<div><dt>{escape(name)}</dt><dd><b>{escape(value)}</b><span>{escape(beside)}</span></dd></div>"
        for name, value, beside in tiles
    )
    return f'<dl class="tiles">{items}</dl>'


def map_of_nodes(facts: Facts) -> str:
    """The interactive map, or why there is none."""
    nodes = facts.nodes
    if nodes is None:
        why = "There is no map: vectors that are all alike, or no numbers at all, have no places."
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
        '<form id="find"><label>Find <input type="search" placeholder="node id" autocomplete="off" spellcheck="false">'
        "</label></form>"
        '<div class="switch" role="group" aria-label="Zoom"><button type="button" data-zoom="1.5"'
        ' aria-label="Zoom in">+</button><button type="button" data-zoom="0.667" aria-label="Zoom out">−</button>'
        '<button type="button" data-zoom="0">Whole map</button></div></div>'
        f'<div class="stage"><canvas id="points" tabindex="0" role="application" aria-describedby="map-help"'
        f' aria-label="Map of {shown} in two dimensions; the same numbers are in embeddings.npy"></canvas>'
        '<canvas id="over" aria-hidden="true"></canvas><div id="card" role="status" hidden></div></div>'
        '<div id="legend" role="group" aria-label="Legend"></div>'
        '<noscript><p class="warning">The map is drawn by a script in this page, which is switched off.</p></noscript>'
        '<p class="small" id="map-help">Point at a node to see who it is; a click keeps it. Lines lead to its'
        " neighbours in the graph, rings mark the nearest vectors. Drag to move; zoom with the buttons, by pinching, or"
        " with the wheel once the map was clicked. Keys: arrows move, + and − zoom, 0 shows all, Esc lets go."
        f" Legend entries single groups out. {_layout(nodes)}</p>",
    )


def _agreement(nodes: NodeMap) -> str:
    """How often near means alike."""
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
    kind, sample = nodes.layout.kind, len(nodes.shown) != int(nodes.shown[-1]) + 1
    how = {
        "PCA": "The two axes are the vectors' first two principal components.",
        "t-SNE": "Places come from t-SNE: who is near whom means something, while distances between far groups and the"
        " sizes of groups mean little.",
    }.get(
        kind,
        f"Places come from t-SNE of {nodes.layout.anchors:,} nodes drawn at random; the others lie among those of them"
        " with the nearest vectors. Who is near whom means something, while distances between far groups and the sizes"
        " of groups mean little.",
    )
    if sample:
        how += f" Shown are {len(nodes.shown):,} nodes drawn at random; counts of neighbours are of the whole graph."
    if nodes.edges is None:
        how += " The graph has too many edges to draw their lines here."
    if nodes.reduced:
        how += " Clusters and nearest vectors are by the first 256 principal components."
    return how


def quality(facts: Facts) -> str:
    """The probe and the clustering, against the floors."""
    metrics = facts.metrics
    if not metrics["probes"]:
        why = (
            "The vectors were not judged, because the run did not end well."
            if metrics["status"] in ("diverged", "collapsed")
            else "The graph's labels were not used to judge the vectors (<code>costa probe RUN</code> does it)."
            if facts.nodes is not None and facts.nodes.labels is not None
            else "The graph has no labels of two classes, so nothing says how good the vectors are; the sections below"
            " need none."
        )
        return _section("quality", "How good are the vectors?", f"<p>{why}</p>")
    floor = metrics["floor"] or {}
    tables = "".join(_probe_table(probe, floor) for probe in metrics["probes"])
    html = (
        "<p>A simple classifier (logistic regression) sees the vectors and the labels of a few nodes, and predicts the"
        " labels of the others; how often it is right is the accuracy. Who trains and who is tested is drawn anew for"
        " each split (the dots).</p>" + tables
    )
    if floor:
        html += (
            '<p class="small">The untrained network is a network of this kind with random weights. Raw features are the'
            " nodes' own numbers without any graph, diffused features the same averaged along the edges. A method that"
            " stays below them has learned nothing a classifier can use. All are means, by"
            f" {DEFAULT_PROTOCOLS[0]}.</p>"
        )
    found = metrics["clustering"]
    if found:
        rows = [Bar("This run", max(found["nmi"], 0), f"{found['nmi']:.3f}")]
        rows += [
            Bar(FLOORS[key], max(floor[key]["nmi"], 0), f"{floor[key]['nmi']:.3f}", kind="other")
            for key in FLOORS
            if key in floor
        ]
        html += bars(rows, caption="Clusters against labels: normalised mutual information", heads=("", "NMI"))
        html += (
            '<p class="small">k-means groups the vectors without seeing a label; 0 means its groups have nothing to do'
            f" with the labels, 1 that they are the same. Adjusted Rand index of this run: {found['ari']:.3f}.</p>"
        )
    return _section("quality", "How good are the vectors?", html)


def _probe_table(probe: dict[str, Any], floor: dict[str, Any]) -> str:
    score, protocol = probe["accuracy"], probe["protocol"]
    splits = score["per_split"]
    spread = f" ± {100 * score['std']:.1f}" if len(splits) > 1 else ""
    rows = [Bar("This run", score["mean"], f"{100 * score['mean']:.1f}{spread} %", splits)]
    if protocol == DEFAULT_PROTOCOLS[0]:
        rows += [
            Bar(FLOORS[key], floor[key]["accuracy"], _percent(floor[key]["accuracy"]), kind="other")
            for key in FLOORS
            if key in floor
        ]
    about = PROTOCOLS[protocol].description if protocol in PROTOCOLS else ""
    number = counted(len(splits), "split")
    caption = f"{protocol}: {about}; {number}"
    few = too_few(probe)
    note = f'<p class="small">Note: {few}.</p>' if few else ""
    return bars(rows, caption=caption, heads=("", "accuracy")) + note


def training(facts: Facts) -> str:
    """The loss, epoch by epoch."""
    points = [(float(epoch), loss) for epoch, loss in facts.losses if math.isfinite(loss)]
    if not facts.losses:
        return _section("training", "Training", "<p>This method is not trained by descending a loss.</p>")
    lost = len(facts.losses) - len(points)
    note = f" In {lost:,} of them it was not a number." if lost else ""
    if len(points) < 2:
        return _section("training", "Training", f"<p>There is no curve of a single epoch.{note}</p>")
    (first, began), (last, ended) = points[0], points[-1]
    course = f"goes from {began:.4g} in epoch {first:.0f} to {ended:.4g} in epoch {last:.0f}."
    drawn = curve(
        points, alt=f"The loss {course}", across="epoch", up="loss", say=lambda x, y: f"epoch {x:.0f}: loss {y:.4f}"
    )
    return _section(
        "training",
        "Training",
        f"<p>The loss is what training makes small. It {course}{note} Its height cannot be compared between methods or"
        f" settings; that it falls and settles is what counts.</p>{drawn}",
    )


def health(facts: Facts) -> str:
    """Whether the vectors are alive."""
    alive, d = facts.metrics.get("health"), facts.shape[1]
    if not alive:
        return _section("health", "Are the vectors alive?", "<p>No: they hold values that are not numbers.</p>")
    rank, cosine = alive["effective_rank"], alive["mean_cosine"]
    if facts.metrics["status"] == "collapsed":
        verdict = "No: they all point the same way, or are zero."
    elif rank < LINE:
        verdict = f"Hardly: they lie along a single line. What may help: {_remedy('collapsed', facts)}."
    elif cosine > ALIKE:
        verdict = "Barely: they differ, but only by a little around one common direction."
    elif cosine > SHARED:
        verdict = "Yes, though they share one strong direction; what tells nodes apart lies around it."
    else:
        verdict = "Yes: they point in different directions."
    text = (
        f"<p>{verdict} Two vectors have a cosine of {cosine:.2f} on average (1 would be all the same direction), and"
        f" they spread as over {rank:.1f} equally used dimensions of the {d:,} there are (the effective rank).</p>"
    )
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
            '<p class="small">A curve that drops like a cliff means that few directions carry everything; a slow'
            " descent, that many do.</p>"
        )
    return _section("health", "Are the vectors alive?", text)


def sketch(sketched: Sketched) -> str:
    """How well the sketch keeps the covariance, beside what is promised."""
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
    noise = " The noise that this run adds besides is left out here." if sketched.noise else ""
    text = (
        f"<p>In each epoch COSTA mixes its {n:,} vectors into {k:,} by a fresh <em>sketch</em> ({sketched.kind}) and"
        " learns from those. That is fair as long as the sketch keeps how the vectors' columns vary together (their"
        f" covariance). Measured on the final vectors, {number} of this run's own sketch: the covariance is off by"
        f" {middle:.2%} of its total in the middle case, {errors[-1]:.2%} in the worst.{noise}</p>"
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
    return _section("graph", "The graph", text)


def _distortion(found: Distortion) -> str:
    parts = [f"dropping {found.edge_rate:.0%} of the edges"] * bool(found.edge_rate)
    parts += [f"masking {found.mask_rate:.0%} of the features"] * bool(found.mask_rate)
    who = "This run was trained while" if found.own else "Many methods perturb the graph while they learn, say by"
    most = max(entry["quartiles"][1] for entry in found.bins) or 1.0
    rows = [
        Bar(entry["degree"], entry["quartiles"][1] / most, f"{entry['quartiles'][1]:.1%}", kind="plain")
        for entry in found.bins
    ]
    rho = found.correlation
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
        + bars(rows, caption=f"Median bias by degree, {found.draws} draws", heads=("degree", "bias"))
    )


def settings(facts: Facts) -> str:
    """What was run, with every setting and where it came from, and the versions."""
    config, metrics = facts.config, facts.metrics
    together = metrics.get("trained_together", 1)
    beside = f", together with {counted(together - 1, 'other run')}" if together > 1 else ""
    memory = metrics.get("peak_memory_bytes")
    pairs = [
        ("Method", f"{facts.method.title} ({config['method']})"),
        ("From", facts.method.citation()),
        ("Graph", facts.graph),
        ("Seed", str(config["seed"])),
        ("Status", metrics["status"]),
        ("Epochs", f"{metrics['epochs']:,}"),
        ("Time", _duration(metrics["seconds"]) + beside),
        ("Device", metrics["device"]),
        ("Peak memory", f"{memory / 2**20:,.0f} MiB" if memory else "not known"),
        ("Source", metrics.get("commit") or "an installed package"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in metrics.get("versions", {}).items())),
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


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
