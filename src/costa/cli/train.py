"""``costa train``."""

from __future__ import annotations

from typing import Any

import typer

from costa.cli import options
from costa.cli.console import console, results_only, said_of, say_columns, say_stage, tell
from costa.errors import InputError
from costa.wording import counted


def train(
    context: typer.Context,
    graph: options.OptionalGraph = None,
    edges: options.Edges = None,
    features: options.Features = None,
    nodes: options.Nodes = None,
    columns: options.Columns = None,
    method: options.Method = "costa-mv",
    out: options.Out = None,
    seed: options.Seed = None,
    seeds: options.Seeds = None,
    epochs: options.Epochs = None,
    device: options.Device = "auto",
    preset: options.Preset = "none",
    config: options.Config = None,
    set_: options.Set = None,
    choose: options.Choose = False,
    data_dir: options.DataDir = None,
    memory: options.Memory = None,
    hold_out_edges: options.HoldOutEdges = None,
    no_probe: options.NoProbe = False,
    resume: options.Resume = False,
    deterministic: options.Deterministic = False,
    tensorboard: options.TensorBoard = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn vectors for the nodes of a graph, write a RUN folder and, if there are labels, evaluate the vectors."""
    if seed is not None and seeds is not None:
        raise InputError("--seed and --seeds were both given; choose one run or several.")
    if verbose and quiet:
        raise InputError("--verbose and --quiet were both given; choose one.")
    from costa import runs, settings, training
    from costa.cli import estimate
    from costa.cli.choose import choose_job, refuse_with_choose
    from costa.cli.runs import execute, print_settings
    from costa.graphs import load_graph, name_files
    from costa.graphs.again import read_again
    from costa.graphs.held_edges import HeldOut
    from costa.graphs.held_edges import hold_out_edges as hold_out
    from costa.graphs.storage import StoredGraph
    from costa.methods import get_method
    from costa.report import tensorboard as board
    from costa.settings import presets

    if choose:
        refuse_with_choose(context)
    if training.started() > 1 and (choose or seeds is not None):
        together = f"{training.started()} processes train one run together"
        raise InputError(f"{together}; leave out --choose and --seeds, or start one process.")
    chosen = get_method(method)
    ranks = context.with_resource(training.joined(training.resolve_device(device)))
    console.quiet = not ranks.first
    context.with_resource(results_only(quiet))
    if deterministic:
        training.make_deterministic()
    spec = name_files(graph, edges, features, nodes)
    given, named = settings.parse_assignments(set_ or []), {"given_by": "--set", "epochs_by": "--epochs"}
    layers: dict[str, Any] = {"preset": preset, "config": config, "given": given, "epochs": epochs, **named}
    resume = resume or training.restarted()
    told = choose or estimate.before_reading(
        *(spec, method, layers, memory, ranks, out, seeds or 1), resumed=resume, probe=not no_probe
    )
    with ranks.first_before_others(), read_again(not ranks.first):
        data = load_graph(spec, columns=said_of(columns), data_dir=data_dir, memory=memory, report=say_stage)
    say_columns(data)
    numbers, several = range(seeds) if seeds else [seed or 0], seeds is not None
    held_out = None
    if hold_out_edges is not None:
        # all seeds hold out the same edges, so that they differ only in the training
        data, held = hold_out(data, hold_out_edges, seed=numbers[0])
        held_out = HeldOut.of(data, held, hold_out_edges, numbers[0])
        tell(f"Held out: {counted(held_out.edges, 'edge')}, {hold_out_edges:.3g} of all; training sees the others.")
    if tensorboard is not None:
        board.check()
    # what a large graph suggests takes a while to find out
    alone = data.beside(ranks.sharing) if isinstance(data, StoredGraph) else data
    resolved = ranks.told(lambda: presets.resolve(chosen, alone, **layers))
    more: dict[str, Any] = {"probe": not no_probe, "resume": resume}
    more |= {"held_out": held_out, "memory": memory, "ranks": ranks, "announce": tell}
    job = runs.Job(data, spec, method, resolved, ranks.device, **more)
    if not told:
        estimate.of_job(job, memory, out, seeds or 1)
    if choose:
        job, folders = choose_job(job, numbers, out, several=several, epochs=epochs)
    else:
        if not ranks.first:
            ((number, folder),) = runs.run_folders(data, method, numbers, out, several=False).items()
            runs.assist(job, folder, number)
            return
        folders = runs.claim_folders(job, numbers, out, several=several, fresh_is_fine=training.restarted())
    print_settings(job, verbose=verbose)
    execute(job, folders, out, data_dir, after=lambda run: board.write(run, tensorboard, data) if tensorboard else None)
