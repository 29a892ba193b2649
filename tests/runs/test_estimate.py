"""What a run will take is told from sizes, and refused if it is more than there is."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from costa.errors import InputError
from costa.graphs.propagation import WIDEST
from costa.graphs.sizes import Sizes, sizes_of
from costa.graphs.synthetic import planted_partition
from costa.memory import IMPORTS
from costa.methods import get_method
from costa.nn.ranks import Ranks
from costa.runs import estimate as module
from costa.runs.costs import WORK
from costa.runs.estimate import Estimate, Room, check, estimate, lacking, settings_before_reading
from costa.settings.presets import resolve

GIB = 2**30
TABLES = {"edge_file": Path("edges.csv"), "feature_file": Path("features.npy"), "read": False}
ROOM = Room(20 * GIB, Path("/cache"), 12 * GIB, Path("/out"), 50 * GIB, shared=False)


def settings_for(name, sizes, **given):
    return settings_before_reading(get_method(name), sizes, "mine", given=given, given_by="--set")


@pytest.fixture
def graph():
    return planted_partition(9000, 3, 16, degree=8, seed=0)


def test_settings_are_those_that_reading_gives_but_for_the_hops(graph):
    method = get_method("costa-mv")
    before = settings_for("costa-mv", sizes_of(graph)).values
    after = resolve(method, graph).values
    assert before.train == after.train
    assert before.sketch == after.sketch
    assert before.encoder.powers == method.Settings().encoder.powers
    given = {"encoder.powers": (0, 1), "encoder.steps": 3}
    assert settings_for("costa-mv", sizes_of(graph), **given).values.encoder == (
        resolve(method, graph, given=given).values.encoder
    )


def test_what_takes_a_few_seconds_is_not_measured(graph, monkeypatch):
    monkeypatch.setattr(module, "seconds_of_stages", None)
    told = estimate("costa-mv", resolve(get_method("costa-mv"), graph), sizes_of(graph), graph=graph)
    assert not told.measured
    assert 0 < told.total < module.FEW
    assert told.cache == 0


def test_every_stage_is_measured(graph, monkeypatch):
    monkeypatch.setattr(module, "FEW", 0.0)
    state = torch.random.get_rng_state()
    told = estimate("costa-mv", resolve(get_method("costa-mv"), graph), sizes_of(graph))
    assert told.measured
    assert set(told.seconds) == set(WORK) - {"read", "parquet"}  # it was read, and its nodes have no ids
    assert min(told.seconds.values()) > 0
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_graph_on_disk_is_measured_before_and_costs_less_once_it_is_there(tmp_path, monkeypatch, own_graph):
    pytest.importorskip("pyarrow")
    from costa import training
    from costa.graphs import graph_sizes, load_graph

    monkeypatch.setattr(module, "FEW", 0.0)
    method, sizes = get_method("costa-mv"), graph_sizes(own_graph, memory="1GiB")
    given = {"encoder.powers": (1,), "encoder.steps": 2}
    told = estimate("costa-mv", settings_for("costa-mv", sizes, **given), sizes)
    assert set(told.seconds) == set(WORK) - {"choose"}  # the hops are given
    assert told.cache > 0
    graph = load_graph(own_graph, memory="1GiB")
    resolved = resolve(method, graph, given=given)
    training.build(method, resolved.values, graph, 0, torch.device("cpu")).prepare(graph)
    again = estimate("costa-mv", resolved, graph_sizes(own_graph, memory="1GiB"))
    assert set(again.seconds) == {"train", "embed", "parquet"}
    assert (again.cache, again.vectors) == (0, told.vectors)
    assert list(Path(graph.folder).parent.glob("tmp*")) == []  # what was written to measure is gone


def test_edges_in_every_step_are_timed_on_the_graph(graph, monkeypatch):
    monkeypatch.setattr(module, "FEW", 0.0)
    resolved = resolve(get_method("bgrl"), graph, epochs=3)
    assert estimate("bgrl", resolved, sizes_of(graph)).seconds == {}
    assert estimate("bgrl", resolved, sizes_of(graph), graph=graph).seconds["train"] > 0


def test_a_method_without_a_loss_has_memory_and_disk_alone(graph):
    told = estimate("diffused", resolve(get_method("diffused"), graph), sizes_of(graph), graph=graph)
    assert told.seconds == {}
    assert told.memory > 0
    assert told.vectors == 4 * 9000 * 16


def test_seeds_share_what_is_prepared_and_have_vectors_of_their_own(graph, monkeypatch):
    monkeypatch.setattr(module, "cores", lambda: 2)
    resolved = resolve(get_method("costa-mv"), graph)
    one, five = (estimate("costa-mv", resolved, sizes_of(graph), seeds=seeds) for seeds in (1, 5))
    assert five.vectors == 5 * one.vectors
    assert five.memory == 2 * one.memory
    assert five.seconds["train"] == pytest.approx(3 * one.seconds["train"])


def test_a_run_that_fits_is_not_refused():
    told = Estimate({}, False, 2 * GIB, GIB, GIB)
    assert lacking(told, ROOM) is None
    check(told, ROOM)


def test_disk_that_is_not_there_is_a_sentence():
    told = Estimate({}, False, GIB, 41 * GIB, GIB)
    assert lacking(told, ROOM) == (
        "this needs about 41.0 GiB of disk in /cache, where 12.0 GiB are free; free some, or name a folder on a larger"
        " disk in XDG_CACHE_HOME."
    )
    with pytest.raises(InputError, match=r"the vectors need about 60.0 GiB of disk in /out, where 50.0 GiB are free"):
        check(Estimate({}, False, GIB, 0, 60 * GIB), ROOM)
    both = Estimate({}, False, GIB, 8 * GIB, 8 * GIB)
    assert lacking(both, ROOM) is None
    assert "16.0 GiB" in lacking(both, replace(ROOM, shared=True))


@pytest.mark.parametrize(
    ("method", "sizes", "given", "says"),
    [
        ("costa-mv", Sizes(10**7, 10**8, 64, **TABLES), {}, "--memory 8GiB keeps the graph on disk"),
        ("grace", Sizes(10**6, 10**6, 64), {}, "--set train.parts=64 trains on a part of the graph at a time"),
        ("costa-mv", Sizes(10**7, 10**8, 64), {"encoder.kind": "gcn"}, "encoder.kind = hops, costa-mv's default"),
        ("dgi", Sizes(10**7, 10**8, 64), {}, "nodes would fit"),
        ("costa-mv", Sizes(10**10, 10**10, 64, on_disk=True, folder=Path("/x")), {}, "nodes would fit"),
    ],
)
def test_memory_that_is_not_there_is_a_sentence_with_what_would_fit(method, sizes, given, says):
    room = replace(ROOM, memory=17 * GIB)
    told = estimate(method, settings_for(method, sizes, **given), sizes, room=room)
    sentence = lacking(told, room)
    assert told.seconds == {}
    assert sentence.startswith("this needs about ")
    assert "and 17.0 GiB are available; " in sentence
    assert says in sentence


def test_a_graph_that_is_said_to_fit_does():
    sizes, room = Sizes(10**7, 10**8, 64), replace(ROOM, memory=17 * GIB)
    settings = settings_for("dgi", sizes)
    told = estimate("dgi", settings, sizes, room=room)
    nodes = int(told.advice.split()[4].replace(",", ""))
    share = nodes / sizes.nodes
    fewer = replace(sizes, nodes=nodes, edges=round(share * sizes.edges))
    assert lacking(estimate("dgi", settings, fewer, room=room), room) is None


def test_room_is_where_the_cache_and_the_run_will_be(tmp_path):
    room = Room.now(tmp_path / "new" / "run")
    assert room.out == tmp_path
    assert room.memory > 0
    assert room.out_free > 0


ON_DISK = Sizes(10**6, 10**7, 64, on_disk=True, folder=Path("/x"))


def of_ranks(size, limit, monkeypatch, sizes=ON_DISK, here=None):
    monkeypatch.setattr(module, "FEW", float("inf"))  # typical seconds
    ranks = Ranks(0, size, local=(0, here or size))
    return estimate("costa-mv", settings_for("costa-mv", sizes), sizes, memory=limit, ranks=ranks, room=ROOM)


def test_several_processes_have_imports_each_and_share_the_rest(monkeypatch):
    one, two = (of_ranks(size, 4 * GIB, monkeypatch) for size in (1, 2))
    assert one.memory == IMPORTS + 3 * 4 * 10**6 * WIDEST
    assert two.memory == 2 * IMPORTS + 2 * 2 * 4 * 10**6 * WIDEST
    of_two_machines = of_ranks(4, 4 * GIB, monkeypatch, here=2)
    assert of_two_machines.memory < two.memory  # each holds fewer rows
    assert of_two_machines.processes == 2


def test_several_processes_share_what_each_does_for_its_rows(monkeypatch):
    one, two = (of_ranks(size, 4 * GIB, monkeypatch) for size in (1, 2))
    halves = {stage: pytest.approx(seconds / 2) for stage, seconds in one.seconds.items()}
    assert two.seconds == one.seconds | {stage: halves[stage] for stage in ("propagate", "embed")}


@pytest.mark.parametrize("limit", [GIB // 2, GIB, 3 * GIB // 2, 2 * GIB, 3 * GIB])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_limit_is_kept_to_or_refused(monkeypatch, limit, size):
    told = of_ranks(size, limit, monkeypatch)
    assert (told.memory > limit) == (lacking(told, ROOM) is not None)


def test_a_limit_that_is_too_small_is_a_sentence_with_one_that_would_do(monkeypatch):
    told = of_ranks(2, GIB, monkeypatch)
    sentence = lacking(told, ROOM)
    assert sentence == (
        "this needs at least 1.3 GiB of memory for 2 processes, and --memory allows 1.0 GiB; give --memory 1.5GiB."
    )
    assert lacking(of_ranks(2, 3 * GIB // 2, monkeypatch), ROOM) is None
    assert "at least 813.8 MiB of memory, and" in lacking(of_ranks(1, GIB // 2, monkeypatch), ROOM)
