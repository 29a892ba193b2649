"""The ``costa`` command: it parses, calls, prints. What it does is in the rooms it calls."""

from __future__ import annotations

import os
import shlex
import signal
import statistics
import sys
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from costa import __version__
from costa.errors import InputError, is_out_of_memory
from costa.experiments.reproduce import TARGETS
from costa.wording import counted

if TYPE_CHECKING:
    from types import FrameType

    from costa.bench.measure import Row
    from costa.experiments.grid import Done
    from costa.experiments.reproduce import Request, Setup
    from costa.experiments.tune import Ended
    from costa.training import Report

console = Console(highlight=False, markup=False)
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Node embeddings without labels: COSTA contrasts sketches of a graph neural network's features.",
    epilog="Start with `costa demo`, then `costa train cora --method costa-mv --preset none`. GRAPH is a name from"
    " `costa datasets`, or a folder with edges.csv and features.npy|csv (names win: ./cora is the folder); or name"
    " files by --edges, --features, --nodes.",
)

GraphArgument = Annotated[
    str,
    typer.Argument(metavar="GRAPH", help="A name from `costa datasets`, a folder, or a file that holds a graph."),
]
OptionalGraph = Annotated[
    str | None,
    typer.Argument(metavar="GRAPH", help="A name from `costa datasets`, a folder, or a file that holds a graph."),
]
EdgesFile = Annotated[
    Path | None,
    typer.Option("--edges", help="Instead of GRAPH, a file of edges: .csv, .tsv, .parquet, .npz or .graphml."),
]
FeaturesFile = Annotated[
    Path | None, typer.Option("--features", help="With --edges, the features: .npy, .npz, .csv, .tsv, .parquet.")
]
NodesFile = Annotated[
    Path | None, typer.Option("--nodes", help="With --edges, the ids and labels: .csv, .tsv, .parquet.")
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `costa train` wrote.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Read benchmark graphs from here first (never written to); the variable COSTA_DATA does the same.",
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda; auto takes a CUDA device where there is one.")]


def main() -> None:
    """Run the command line; a user's mistake becomes one sentence and exit code 2."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        app(prog_name="costa")
    except InputError as problem:
        _fail(str(problem))
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename else ""
        _fail(f"{where}{problem.strerror or problem}; check the path, its permissions and the space on the disk.")
    except (MemoryError, RuntimeError) as problem:
        if not is_out_of_memory(problem):
            raise
        _fail(
            "there is not enough memory for this; lower encoder.width, or sketch.ratio where the method sketches, or"
            " take a larger machine."
        )


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """What a scheduler sends when the time is up is taken as Ctrl-C, even where a shell has Ctrl-C ignored."""
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(number, frame)


def _fail(sentence: str) -> None:
    print(f"costa: {sentence}", file=sys.stderr)
    sys.exit(2)


def _version(show: bool) -> None:
    if show:
        print(f"costa {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


@app.command(short_help="A table, a picture and a page, no download.")
def demo(
    out: Annotated[Path, typer.Option(help="Where the page, the numbers and the models go.")] = Path("costa-demo"),
) -> None:
    """Train and judge COSTA on the embedded digits graph: a table, a picture and a page, no download."""
    from costa import demo as room

    began = time.perf_counter()
    _say("1,797 handwritten digits, linked to their nearest neighbours. No label is used in training.\n")
    rows = room.run(out, lambda step: _say(f"  {step} …"))
    _say("\nLogistic regression and k-means on the vectors")
    table = Table(box=None)
    for column in ("", "2% labels", "10% labels", "NMI"):
        table.add_column(column, justify="left" if not column else "right")
    for row in rows:
        table.add_row(row.title, _percent(row.low_label), _percent(row.ten_percent), "{:.3f} ± {:.3f}".format(*row.nmi))
    console.print(table)
    _say(
        "\nAccuracy (percent) is on nodes whose label was not used: mean ± standard deviation over"
        f" {room.SEEDS} seeds × {room.SPLITS} splits. NMI says how well k-means, which sees no label, finds the ten"
        f" digits, over {room.SEEDS} seeds. Diffused features have no weights and the untrained GCN has random ones:"
        " two strong floors."
    )
    _say(f"\nPage      {out / room.REPORT}   (open it in a browser)")
    _say(f"Picture   {out / room.PICTURE}\nNumbers   {out / room.RESULTS}")
    _say(f"Models    {out}/digits-*/   (try: costa probe {out / room.REPORTED})")
    _say(f"Done in {time.perf_counter() - began:.0f} s. Next: costa train cora --method costa-mv --preset none")


@app.command(short_help="Learn vectors for a graph's nodes.")
def train(
    graph: OptionalGraph = None,
    edges: EdgesFile = None,
    features: FeaturesFile = None,
    nodes: NodesFile = None,
    method: Annotated[str, typer.Option(help="A name from `costa methods`.")] = "costa-sv",
    out: Annotated[
        Path | None,
        typer.Option(help="The RUN folder [default: runs/GRAPH-METHOD-SEED]; with --seeds, the folder of those."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the weights and of all that is random [default: 0].")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Train this many runs, seeds 0, 1, 2 …")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the settings' number of epochs.")] = None,
    device: Device = "auto",
    preset: Annotated[
        str,
        typer.Option(
            help="Settings for this dataset, where there are any: tuned (chosen by validation), strict (by validation"
            " inside one fixed fifth), paper (as published) or none."
        ),
    ] = "tuned",
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings, over the preset.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="One setting, such as sketch.ratio=0.25; a run begins by printing them all.",
        ),
    ] = None,
    data_dir: DataDir = None,
    no_probe: Annotated[
        bool, typer.Option("--no-probe", help="Do not judge the vectors by the graph's labels.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was interrupted.")] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same bits on CUDA every time, more slowly.")
    ] = False,
    results: Annotated[
        Path | None, typer.Option(help="Also add the run to RESULTS/METHOD/DATASET.jsonl, the store of results.")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Also write loss, health and vectors into this folder, for TensorBoard.")
    ] = None,
) -> None:
    """Learn vectors for the nodes of a graph; write a RUN folder; judge the vectors where there are labels."""
    if seed is not None and seeds is not None:
        raise InputError("--seed and --seeds were both given; choose one run or several.")
    from costa import choosing, many, runs, settings, training
    from costa import tensorboard as board
    from costa.experiments import presets, store
    from costa.graphs import load_graph, name_files
    from costa.methods import get_method

    chosen = get_method(method)
    where = training.resolve_device(device)
    if deterministic:
        training.make_deterministic()
    spec = name_files(graph, edges, features, nodes)
    data = load_graph(spec, data_dir=data_dir)
    given = settings.parse_assignments(set_ or [])
    options = {"given_by": "--set", "epochs_by": "--epochs"}
    resolved = presets.resolve(chosen, data, preset=preset, config=config, given=given, epochs=epochs, **options)
    wanted = range(seeds) if seeds is not None else [seed or 0]
    folders = {s: _folder(out, data.name, method, s, several=seeds is not None) for s in wanted}
    for s, folder in folders.items():
        runs.claim(folder, method, data, s, resume=resume, fresh_is_fine=seeds is not None)
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
    if tensorboard is not None:
        board.check()
    title = f"{chosen.title} on {runs.describe(data)}, on {where}"
    _print_settings(resolved, title, chosen.unused(resolved.values))
    for line in choosing.from_graph(resolved, data):
        _say(f"Chosen: {line}.")

    job = runs.Job(data, spec, method, resolved, where, probe=not no_probe, resume=resume, announce=_say)
    unjudged = "--no-probe" if no_probe else None if runs.is_labelled(data) else "no labels of two classes"
    complete = {s for s, folder in folders.items() if runs.is_complete(folder, probe=unjudged is None)}
    single = folders[wanted[0]] if len(folders) == 1 else None
    label = f"seed {wanted[0]}" if single else f"{len(folders)} seeds"
    shown = None if many.in_processes(job, folders) else job.train
    collected = []
    with _progress(label, shown) as report, _kept(single or out or Path("runs")):
        for metrics in many.execute(job, folders, data_dir, report=report):
            s = metrics["seed"]
            collected.append(metrics)
            _print_run(metrics, folders[s], unjudged)
            if results is not None and s not in complete and metrics["status"] != "interrupted":
                own = {"set": resolved.set_by_hand}
                store.append(results, metrics | own, settings.flatten(resolved.values))
            if tensorboard is not None:
                board.write(folders[s], tensorboard, data)
    judged = [metrics for metrics in collected if metrics["probes"]]
    if len(judged) > 1:
        for protocol, (mean, pairs) in runs.pair_scores(judged).items():
            line = f"{protocol:<16} mean over {len(judged)} seeds × all splits {100 * mean:.1f}"
            if len(pairs) > 1:
                line += f"; seed s on split s {_percent((statistics.mean(pairs), statistics.stdev(pairs)))}"
            _say(line)
    statuses = {metrics["status"] for metrics in collected}
    left = len(folders) - len(collected)
    if left:
        _say(f"Stopped before the last {left} of {len(folders)} seeds; the same command with --resume goes on.")
    if left or statuses != {"ok"}:
        raise typer.Exit(130 if left or "interrupted" in statuses else 1)
    again = [] if data_dir is None else ["--data-dir", str(data_dir)]
    _say(f"Next: {shlex.join(['costa', 'report', str(folders[wanted[0]]), *again])}")


@app.command(short_help="Judge vectors by the graph's labels.")
def probe(
    run: RunArgument,
    protocol: Annotated[str, typer.Option(help="Which nodes train, choose and test; the names are above.")] = (
        "random-10-10-80"
    ),
    repeats: Annotated[int, typer.Option(min=1, help="How many splits.")] = 20,
    device: Device = "auto",
    data_dir: DataDir = None,
) -> None:
    """Judge a run's vectors: logistic regression on splits of the labels; the result goes into RUN/metrics.json.

    \b
    random-10-10-80  10% train, 10% choose C, 80% test (the default)
    random-10-90-cv  10% train and choose C by 5-fold cross-validation, 90% test (GRACE's)
    random-20-80     10% train, 10% choose C, then both train again, 80% test (BGRL's)
    random-10-80-10  10% train, 80% choose C, 10% test (what the released COSTA code does)
    random-2-2-96    2% train, 2% choose C, 96% test (few labels)
    strict-10-10-80  10% train, 10% choose C, both inside one fixed fifth; the other 80% test
    public           the graph's own masks: Planetoid's one split, WikiCS' twenty
    """
    from costa import runs, training

    where = training.resolve_device(device)
    data = runs.load_run_graph(run, data_dir)
    result = runs.probe_graph(runs.load_embeddings(run), data, protocol, repeats, where)
    runs.add_probe(run, result)
    _say(f"{run}: accuracy {result.accuracy}\n{' ' * len(str(run))}  macro-F1 {result.macro_f1}")
    _say_if_few(result.to_dict())


@app.command(short_help="Vectors for a graph, old or new.")
def embed(
    run: RunArgument,
    out: Annotated[Path, typer.Option(help="Where the vectors go: a name ending in .npy, .csv or .parquet.")],
    graph: OptionalGraph = None,
    edges: EdgesFile = None,
    features: FeaturesFile = None,
    nodes: NodesFile = None,
    device: Device = "auto",
    data_dir: DataDir = None,
) -> None:
    """Vectors from a trained model, for its own graph or another with the same feature columns in the same order."""
    from costa import runs, training
    from costa.graphs import load_graph, name_files

    model = runs.load_model(run, training.resolve_device(device))
    data = load_graph(name_files(graph, edges, features, nodes), data_dir=data_dir)
    runs.check_vector_path(out)
    z = runs.embed(model, run, data)
    runs.write_vectors(out, z, data.get("node_ids"))
    _say(f"{out}: {z.shape[0]:,} nodes × {z.shape[1]}")


@app.command(short_help="A run as one page.")
def report(run: RunArgument, data_dir: DataDir = None) -> None:
    """Write RUN/report.html: scores, curves and a map of the nodes, in one file that opens without a network."""
    from costa.report import write_report

    _say(f"{write_report(run, data_dir, _say)}: open it in a browser")


@app.command(short_help="The graphs known by name.")
def datasets() -> None:
    """The graphs that are known by name."""
    from costa.graphs.benchmarks import BENCHMARKS

    table = Table(box=None)
    for column in ("name", "nodes", "edges", "features", "classes", "what"):
        table.add_column(column, justify="right" if column in ("nodes", "edges", "features", "classes") else "left")
    for graph in BENCHMARKS:
        counts = (graph.nodes, graph.edges, graph.features, graph.classes)
        table.add_row(graph.name, *(f"{count:,}" for count in counts), graph.description)
    console.print(table)
    _say("\nAll but digits are downloaded once, checked and cached; --data-dir or COSTA_DATA names a folder with them.")


@app.command(short_help="The methods there are.")
def methods() -> None:
    """The methods that can be trained."""
    from costa.methods import get_method, method_names

    table = Table(box=None)
    for column in ("name", "what", "paper"):
        table.add_column(column)
    for name in method_names():
        method = get_method(name)
        table.add_row(name, method.title, method.citation())
    console.print(table)


@app.command(short_help="Search settings by validation.")
def tune(
    graph: OptionalGraph = None,
    edges: EdgesFile = None,
    features: FeaturesFile = None,
    nodes: NodesFile = None,
    method: Annotated[str, typer.Option(help="A name from `costa methods`.")] = "costa-sv",
    trials: Annotated[int, typer.Option(min=1, help="Go on until the study holds so many.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Initialisations of a trial.")] = 2,
    epochs: Annotated[int, typer.Option(min=1, help="The most a trial trains; its best checkpoint counts.")] = 1000,
    splits: Annotated[int, typer.Option(min=1, max=100, help="Splits that each initialisation is judged on.")] = 10,
    finalists: Annotated[
        int, typer.Option(min=0, help="So many of the best are trained again and chosen from; 0 only searches.")
    ] = 10,
    final_seeds: Annotated[int, typer.Option(min=1, help="Initialisations of a finalist.")] = 10,
    final_splits: Annotated[int, typer.Option(min=1, help="Splits that a finalist is judged on.")] = 20,
    try_: Annotated[
        list[Path] | None, typer.Option("--try", metavar="FILE", help="A TOML file of settings to try first.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Keep one setting, such as encoder.width=128, and search the others."
        ),
    ] = None,
    study: Annotated[
        Path | None, typer.Option(help="The file of the study [default: tuning/METHOD-GRAPH.log].")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where tuned/ and strict/METHOD/GRAPH.toml go.")] = Path("tuning"),
    guide: Annotated[
        str,
        typer.Option(help="The number that the search follows: strict, or tuned, which chooses no strict settings."),
    ] = "strict",
    timeout: Annotated[float | None, typer.Option(min=0, help="Stop after so many seconds.")] = None,
    device: Device = "auto",
    data_dir: DataDir = None,
) -> None:
    """Search a method's settings for a graph by validation accuracy alone; no test node is ever predicted.

    The study is a file: the same command goes on with it, and several may work on it at once. Two files of settings
    come out, for --config: tuned, by validation on random splits, and strict, by validation inside the fixed fifth of
    strict-10-10-80.
    """
    from costa import runs, settings, training
    from costa.experiments import tune as room
    from costa.graphs import load_graph, name_files
    from costa.methods import get_method

    until = time.monotonic() + timeout if timeout is not None else float("inf")
    chosen, where = get_method(method), training.resolve_device(device)
    data = load_graph(name_files(graph, edges, features, nodes), data_dir=data_dir)
    given = settings.parse_assignments(set_ or [])
    job = room.Job(data, chosen, where, epochs, seeds, splits, final_splits, until, guide, given)
    path = study or Path("tuning") / f"{method}-{data.name}.log"
    opened = room.open_study(path, job, starts=try_ or [])
    _say(f"{chosen.title} on {runs.describe(data)}, on {where}")
    _say_if_few(job.size())
    _say(f"{path}: {len(room.finished(opened))} of {trials} trials")
    try:
        for ended in room.search(job, opened, trials):
            _print_trial(ended, job.guide)
        for final in room.judge_finalists(job, opened, finalists, final_seeds):
            judged = f"{final.percent} after {final.epochs} epochs" if final.why is None else final.why
            _say(f"finalist {final.number:<4} {final.preset:<6} {judged}")
    except (room.OutOfTime, KeyboardInterrupt) as stop:
        _say(f"Stopped. What has ended is in {path}; the same command goes on.")
        raise typer.Exit(130 if isinstance(stop, KeyboardInterrupt) else 0) from None
    if finalists:
        for written in room.write_presets(job, opened, finalists, final_seeds, out):
            _say(str(written))


@app.command(short_help="How much augmentation distorts a graph.")
def bias(
    graph: GraphArgument,
    edge_rate: Annotated[float, typer.Option(help="The probability that an edge is dropped.")] = 0.3,
    mask_rate: Annotated[float, typer.Option(help="The probability that an attribute is masked.")] = 0.3,
    draws: Annotated[int, typer.Option(min=2, help="Augmented graphs to take the mean over.")] = 500,
    out: Annotated[
        Path | None, typer.Option(help="Where the picture and each node's numbers go [default: bias-GRAPH].")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="The encoder of this RUN folder [default: a GCN with random weights].")
    ] = None,
    device: Device = "auto",
    data_dir: DataDir = None,
) -> None:
    """How much dropping edges and masking attributes at these rates would distort a graph's vectors, by degree.

    The bias of a node is how far the mean of its augmented vectors lies from its own; what is random in the draws is
    taken off.
    """
    from costa import runs, training
    from costa.analysis import report
    from costa.graphs import load_graph

    where = training.resolve_device(device)
    data = load_graph(graph, data_dir=data_dir)
    model = report.trained(run, data, where) if run else report.untrained(data, where)
    _say(f"{runs.describe(data)}; {model.title if run is None else run}, {draws} draws on {where}\n")
    with console.status(f"{draws} draws of each augmentation"):
        found = report.distortion(model, data, edge_rate=edge_rate, mask_rate=mask_rate, draws=draws)
    _say("Median bias of the nodes of a degree, in percent of a vector's length")
    table = Table(box=None)
    for column in ("degree", "nodes", *(report.COLUMNS[name] for name in found.biases)):
        table.add_column(column, justify="right")
    for row in found.table():
        table.add_row(*row)
    console.print(table)
    _say(f"\n{found.conclusion()}\n")
    for path in report.write(found, data, out or Path(f"bias-{data.name}")):
        _say(str(path))


@app.command(short_help="What k buys on a graph.")
def bounds(
    graph: GraphArgument,
    k: Annotated[
        list[int] | None, typer.Option(min=1, help="Rows of the sketch; again for more [default: 64, 256, 1024].")
    ] = None,
    sketch: Annotated[
        list[str] | None, typer.Option(help="A sketch's name; again for more [default: gaussian].")
    ] = None,
    eps: Annotated[
        float | None, typer.Option(help="The error to stay below [default: a quarter of the largest eigenvalue].")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The graph's features, not those of an untrained encoder.")
    ] = False,
    run: Annotated[Path | None, typer.Option(help="A RUN folder: the vectors of its model.")] = None,
    device: Device = "auto",
    data_dir: DataDir = None,
) -> None:
    """How well a sketch of k rows keeps the covariance of this graph's features, and which k to take.

    All errors are ‖HᵀH − H̃ᵀH̃‖₂ as a share of the trace of HᵀH, H without its mean.
    """
    if raw and run is not None:
        raise InputError("--raw and --run were both given; choose the graph's features or a model's vectors.")
    from costa import training
    from costa.experiments import bounds as room
    from costa.graphs import load_graph

    where = training.resolve_device(device)
    data = load_graph(graph, data_dir=data_dir)
    h = room.features_of(data, where, raw=raw, run=run)
    found = room.survey(h, sketch or ["gaussian"], k or [64, 256, 1024], eps)
    whose = "its features" if raw else f"the vectors of {run}" if run else "the vectors of an untrained encoder"
    size = f"n = {found.nodes:,}, d = {found.columns:,}, effective rank {found.effective_rank:.1f}"
    _say(f"{data.name}, {whose}: {size}")
    _say(f"largest eigenvalue: {found.largest:.3f} of the trace, which is the error of a sketch that is zero\n")
    table = Table(box=None)
    for column in ("sketch", "k", "draws", "median", "95% below", "lemma, 95%", "proved, 95%"):
        table.add_column(column, justify="left" if column == "sketch" else "right")
    for row in found.rows:
        errors = (_number(value, ".3f") for value in (row.median, row.q95, row.stated_eps, row.proved_eps))
        table.add_row(row.sketch, f"{row.k:,}", str(row.draws), *errors)
    console.print(table)
    _say("\n" + "\n".join(found.advice))


@app.command(short_help="Time and memory beside plain twins.")
def bench(
    suite: Annotated[
        list[str] | None,
        typer.Argument(metavar="SUITE", help="From the list above [default: digits; runtime and physics on CUDA]."),
    ] = None,
    device: Device = "auto",
    epochs: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="In a timed round, of which there are five; fewer where that takes over a second."
        ),
    ] = 50,
    out: Annotated[Path, typer.Option(help="Where SUITE-DEVICE.json goes.")] = Path("results/bench"),
    data_dir: DataDir = None,
) -> None:
    """Milliseconds an epoch, peak memory and seconds to a trained and probed model, beside plain PyTorch twins.

    \b
    runtime  Amazon-Computers, 1,000 … 8,000 of its nodes and all (the paper's figure)
    physics  Coauthor-Physics
    cora     Cora, with a sparse sketch too
    digits   the embedded digits, no download
    memory   graphs of 20,000 to 160,000 nodes at one k (for a GPU: a CPU's memory is not told apart)
    seeds    Cora, 1 seed against 20 at once (a GPU's)
    profile  one epoch on Coauthor-Physics, part by part (a GPU's)
    """
    from costa import training
    from costa.bench import suites

    where = training.resolve_device(device)
    names = suite or suites.default_suites(where)
    suites.check_suites(names)
    for name in names:
        with console.status(name) as status:
            job = suites.Job(where, epochs, data_dir, status.update)
            path = suites.run_suite(name, job, out, _print_race)
        _say(f"{path}\n")


@app.command(
    short_help="The paper's tables and figures.",
    help="Make what the paper shows: train the runs that the store of results lacks, then write tables and figures from"
    " it. Interrupted, the same command goes on.\n\n\b\n"
    + "\n".join(f"{name:<21} {target.description}" for name, target in TARGETS.items()),
)
def reproduce(
    target: Annotated[list[str], typer.Argument(metavar="TARGET", help="From the list above.")],
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Initialisations of each number.")] = 20,
    datasets: Annotated[
        str, typer.Option(metavar="A,B", help="Only these [default: those of the paper, but WikiCS].")
    ] = "",
    methods: Annotated[str, typer.Option(metavar="A,B", help="Only these.")] = "",
    device: Device = "auto",
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time [default: as many as cores; one on a GPU].")
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Train nothing: only write what the store has.")] = False,
    results: Annotated[Path, typer.Option(help="The store of results.")] = Path("results"),
    out: Annotated[Path, typer.Option(help="Where the figures go; the pages lie beside it.")] = Path("docs/figures"),
    data_dir: DataDir = None,
) -> None:
    """Run what is missing, and write the targets from the store of results."""
    from costa.experiments import reproduce as room

    names = [[name for name in text.split(",") if name] for text in (datasets, methods)]
    request = room.Request(results, out, seeds, *names)
    room.check(target, request)
    failed = 0
    if not no_run:
        failed = _fill(target, request, device, jobs, data_dir)
        room.measure(target, request, lambda: _setup(device, jobs, data_dir))
    for path in room.reproduce(target, request):
        _say(str(path))
    if failed:
        _fail(f"{counted(failed, 'run')} could not be made; the lines above say why.")


def _fill(target: list[str], request: Request, device: str, jobs: int | None, data_dir: Path | None) -> int:
    """Train what the targets lack; a line for each task that has ended, with what is left, and how long it took.

    Returns:
        How many runs could not be made.
    """
    from costa.experiments import reproduce as room

    wanted = room.cells(target, request)
    if not wanted:
        return 0
    from costa import many, training
    from costa.experiments import grid

    work = grid.missing(wanted, request.results, request.seeds)
    total = sum(len(seeds) for _, seeds in work)
    to_make = f"{counted(len(wanted), 'cell')}, {counted(total, 'run')} to make"
    _say(to_make if work else f"{to_make}: all are in the store")
    if not work:
        return 0
    where = training.resolve_device(device)
    began, done, failed = time.perf_counter(), 0, 0

    def report(ended: Done) -> None:
        nonlocal done, failed
        done += len(ended.seeds)
        spent = time.perf_counter() - began
        left = _duration(spent / done * (total - done))
        if ended.why is None:
            _say(f"{done}/{total}  {ended.cell.label}: {_ending(ended.metrics)}; {left} left")
        else:
            failed += len(ended.seeds)
            _say(f"{done}/{total}  {ended.cell.label} could not be run: {ended.why} {left} left")

    try:
        jobs = jobs or (1 if where.type == "cuda" else many.cores())
        grid.fill(work, request.results, where, data_dir=data_dir, jobs=jobs, report=report)
    except KeyboardInterrupt:
        _say(f"Stopped after {done} of {total} runs. They are in {request.results}; the same command goes on.")
        raise typer.Exit(130) from None
    if done > failed:
        _say(f"{counted(done - failed, 'run')} in {_duration(time.perf_counter() - began)}")
    return failed


def _setup(device: str, jobs: int | None, data_dir: Path | None) -> Setup:
    from costa import training
    from costa.experiments.reproduce import Setup

    return Setup(training.resolve_device(device), jobs, data_dir, _say)


def _ending(collected: list[dict[str, Any]]) -> str:
    """How the runs of one cell came out."""
    scores = [metrics["probes"][0]["accuracy"]["mean"] for metrics in collected if metrics["probes"]]
    seeds = ", ".join(str(metrics["seed"]) for metrics in collected)
    named = f"seed {seeds}" if len(collected) == 1 else f"{len(collected)} seeds"
    lost = {metrics["status"] for metrics in collected} - {"ok"}
    parts = [f"{100 * statistics.mean(scores):.1f}"] if scores else []
    return f"{named}, {', '.join([*parts, *sorted(lost)])}"


def _duration(seconds: float) -> str:
    """A time, in words that a glance takes in.

    >>> _duration(40), _duration(170), _duration(9000)
    ('40 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _say(text: str = "") -> None:
    """A line for a person: wrapped by words on a terminal, left whole for a file or a pipe."""
    console.print(text, soft_wrap=not console.is_terminal)


def _percent(score: tuple[float, float]) -> str:
    return f"{100 * score[0]:.1f} ± {100 * score[1]:.1f}"


def _folder(out: Path | None, graph: str, method: str, seed: int, *, several: bool) -> Path:
    name = f"{graph}-{method}-{seed}"
    if out is None:
        return Path("runs") / name
    return out / name if several else out


def _print_settings(resolved: Any, title: str, idle: Container[str]) -> None:
    """The settings, where each came from, and which of them the others leave no use, ``idle``."""
    from costa.settings import flatten

    _say(title)
    table = Table(box=None)
    for column in ("setting", "value", "from"):
        table.add_column(column)
    for key, value in flatten(resolved.values).items():
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        table.add_row(key, shown, resolved.origins[key] + (" (no use here)" if key in idle else ""))
    console.print(table)
    if resolved.note:
        _say(f"Note: {resolved.note}.")
    _say()


@contextmanager
def _kept(folder: Path) -> Iterator[None]:
    """A Ctrl-C that training does not wait for, while the vectors are judged say: what there is, is on disk."""
    try:
        yield
    except KeyboardInterrupt:
        _say(f"Stopped. What was made is in {folder}{os.sep}; the same command with --resume goes on.")
        raise typer.Exit(130) from None


@contextmanager
def _progress(label: str, settings: Any) -> Iterator[Report | None]:
    """A bar with loss, epochs a second and time left; silent when the output is not a terminal."""
    if settings is None or not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(label, total=settings.epochs, pace="")
        began = time.perf_counter()
        first: int | None = None

        def report(done: int, loss: float) -> None:
            nonlocal began, first
            if first is None or done < first:
                began, first = time.perf_counter(), done
            rate = (done - first) / max(time.perf_counter() - began, 1e-9)
            progress.update(task, completed=done, pace=f"loss {loss:.4f}  {rate:.1f} epochs/s")

        yield report


def _print_run(metrics: dict[str, Any], folder: Path, unjudged: str | None) -> None:
    """How one run ended, what it is worth and where it is.

    ``unjudged`` is why nothing judged it, where that is so and was not said before.
    """
    from costa.floors import highest
    from costa.health import remedy
    from costa.methods import get_method
    from costa.runs import DEFAULT_PROTOCOLS
    from costa.settings import flatten

    method = metrics["method"]
    known = flatten(get_method(method).Settings())
    head = f"{method} on {metrics['dataset']}, seed {metrics['seed']}"
    after = counted(metrics["epochs"], "epoch")
    others = metrics.get("trained_together", 1) - 1
    beside = f", together with {counted(others, 'other')}" if others else ""
    ending = {
        # a method without a loss has no epochs
        "ok": f"{after if metrics['epochs'] else 'done'} in {metrics['seconds']:.1f} s{beside}",
        "interrupted": f"stopped after {after}; the same command with --resume goes on from there.",
        "diverged": f"diverged after {after} and is not judged; {remedy('diverged', known)}.",
        "collapsed": f"collapsed{f' after {after}' if metrics['epochs'] else ''}: all vectors point the same way, or"
        f" are zero, and are not judged; {remedy('collapsed', known)}.",
    }
    _say(f"{head}: {ending[metrics['status']]}")
    for probe in metrics["probes"]:
        accuracy = probe["accuracy"]
        _say(
            f"  {probe['protocol']:<16} accuracy {_percent((accuracy['mean'], accuracy['std']))}"
            f"   macro-F1 {100 * probe['macro_f1']['mean']:.1f}   ({len(accuracy['per_split'])} splits)"
        )
        _say_if_few(probe)
    alive = metrics.get("health")
    if alive:
        rank = f"effective rank {alive['effective_rank']:.1f}"
        _say(f"  vectors          {rank}   mean cosine {alive['mean_cosine']:.3f}")
        if metrics["status"] == "ok" and alive["effective_rank"] < 2:
            _say(f"  Note: the vectors have all but collapsed onto a line; {remedy('collapsed', known)}.")
    if metrics["clustering"]:
        _say(f"  k-means          NMI {metrics['clustering']['nmi']:.3f}   ARI {metrics['clustering']['ari']:.3f}")
    if metrics["status"] == "ok" and not metrics["probes"] and unjudged:
        _say(f"  not judged: {unjudged}")
    if metrics["floor"]:
        floors = "   ".join(
            f"{name} {100 * floor['accuracy']:.1f} (NMI {floor['nmi']:.3f})" for name, floor in metrics["floor"].items()
        )
        _say(f"  floors           {floors}   ({DEFAULT_PROTOCOLS[0]})")
        ours, (name, floor) = metrics["probes"][0]["accuracy"]["mean"], highest(metrics["floor"])
        if ours <= floor and method not in metrics["floor"]:
            _say(
                f"  Note: not above {name} ({100 * ours:.1f} against {100 * floor:.1f}); try another method, more"
                " epochs or other settings."
            )
    _say(f"  {folder}{os.sep}")


def _say_if_few(probe: dict[str, Any]) -> None:
    from costa.probe import too_few

    few = too_few(probe)
    if few:
        _say(f"  Note: {few}.")


def _print_trial(ended: Ended, guide: str) -> None:
    found = f"given up: {ended.why}"
    if ended.accuracy is not None:
        found = f"{guide} validation {100 * ended.accuracy:.1f} after {ended.epochs} epochs"
    best = "" if ended.best is None else f", the best so far {100 * ended.best:.1f}"
    _say(f"trial {ended.number:<4} {found}, {ended.seconds:.1f} s{best}")


def _print_race(rows: list[Row]) -> None:
    """One graph's table, and for each of the package's own methods how it compares with each twin."""
    from costa.bench.suites import speedups

    _say(f"{rows[0].graph}: {rows[0].nodes:,} nodes, {rows[0].edges:,} edges")
    table = Table(box=None)
    for column in ("contestant", "ms/epoch", "spread", "× fastest twin", "peak MiB", "probed s", "status"):
        table.add_column(column, justify="left" if column in ("contestant", "status") else "right")
    times = speedups(rows)
    for row in rows:
        over = times.get(row.contestant)
        table.add_row(
            row.contestant,
            _number(row.ms_per_epoch, ".2f"),
            _number(row.ms_spread, ".2f"),
            _number(min(over.values()) if over else None, ".2f"),
            _number(row.peak_memory_bytes and row.peak_memory_bytes / 2**20, ",.0f"),
            _number(row.seconds_to_probed, ".1f"),
            row.status,
        )
    console.print(table)
    for name, over in times.items():
        if over and name not in over:
            _say(f"{name}, speed: " + ", ".join(f"{ratio:.2f} × {twin}" for twin, ratio in over.items()))
    _say()


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
