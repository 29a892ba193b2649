"""Several real processes compute what one does: losses, gradients, weights, vectors and decisions."""

import pytest
import torch

from costa import training
from costa.errors import InputError
from costa.nn.ranks import ALONE, Ranks
from tests.training import processes
from tests.training.processes import CASES, MORE, everything, small_graph, together

PRECISIONS = pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=str)


@pytest.fixture(scope="module")
def one():
    return everything(ALONE)


@pytest.fixture(scope="module", params=[2, 3])
def several(request, tmp_path_factory):
    return together(request.param, tmp_path_factory.mktemp("processes"))


def largest(tensors):
    return max(float(tensor.double().abs().max()) for tensor in tensors)


@PRECISIONS
def test_the_loss_and_the_mean_gradient_are_those_of_one_process(one, several, dtype, close):
    assert len(one["losses_and_gradients", dtype]) == 3 * len(CASES) + 3 * len(MORE) - 2
    for case, (loss, _, gradients, state, drawn) in one["losses_and_gradients", dtype].items():
        assert loss.dtype == dtype
        for rank in several:
            its_loss, mean, its_gradients, its_state, its_drawn = rank["losses_and_gradients", dtype][case]
            assert abs(float(its_loss - loss)) < close * float(loss), case
            assert abs(float(mean - loss)) < close * float(loss), case
            apart = largest(a - b for a, b in zip(its_gradients, gradients, strict=True))
            assert largest(gradients) > 0
            assert apart < close * largest(gradients), case
            # the running moments of BatchNorm, too
            assert largest(its_state[key].double() - tensor.double() for key, tensor in state.items()) < close, case
            assert torch.equal(its_drawn, drawn), case


def test_all_processes_have_the_same_bits(several):
    first, *others = several
    for key in [key for key in first if isinstance(key, tuple)]:
        for rank in others:
            for case, (loss, state, *_) in first[key].items():
                its_loss, its_state, *_ = rank[key][case]
                assert torch.equal(loss, its_loss), case
                if key[0] == "trained":
                    assert [name for name in state if not torch.equal(state[name], its_state[name])] == []


@PRECISIONS
def test_after_twenty_steps_the_vectors_are_those_of_one_process(one, several, dtype, close):
    for case, (losses, _, vectors, hidden) in one["trained", dtype].items():
        its_losses, _, its_vectors, its_hidden = several[0]["trained", dtype][case]
        assert losses.isfinite().all()
        assert largest([its_losses - losses]) < 1e-4
        assert its_vectors.shape == vectors.shape
        assert largest([its_vectors - vectors]) < 10 * close, case
        assert largest([its_hidden - hidden]) < 10 * close, case
        # the other processes have the vectors of their own rows
        parts = [rank["trained", dtype][case][2] for rank in several[1:]]
        assert torch.equal(torch.cat(parts), its_vectors[len(its_vectors) - sum(map(len, parts)) :])


def test_the_watch_sees_the_same_everywhere(one, several):
    spread, beats = one["watched"]
    for rank in several:
        assert rank["watched"] == several[0]["watched"]
        assert rank["watched"][0].rank == pytest.approx(spread.rank, rel=1e-4)
        assert rank["watched"][0].apart == pytest.approx(spread.apart, rel=1e-4)
        assert rank["watched"][1] == beats


def test_a_loss_that_is_not_finite_stops_all(one, several):
    assert one["diverged"][0] != one["diverged"][-1]
    for rank in several:
        assert rank["diverged"] == one["diverged"]


def test_a_step_sends_what_is_said(several):
    for rank in several:
        assert len(rank["bytes"]) == 8
        for said, given in rank["bytes"]:
            assert said == given


def test_what_the_first_makes_alone_it_makes_with_the_threads_of_all(several):
    for rank in several:
        assert rank["threads"] == (len(several), 1)


def test_a_process_keeps_its_rows_alone():
    graph = small_graph()
    whole, _ = processes.build("costa-mv", {}, graph, ALONE)
    inputs = whole.inputs(graph)
    rows = torch.tensor([50, 3, 20, 41, 7])
    for rank, held in enumerate(([1, 4], [2], [0, 3])):
        part = inputs.part(Ranks(rank, 3).range(graph.num_nodes))
        assert part.held(rows).tolist() == held
        for mine, all_rows in zip(part.at(rows).blocks, inputs.blocks, strict=True):
            assert torch.equal(mine, all_rows[rows[held]])
        assert all(block.untyped_storage().nbytes() == block.nbytes for block in part.blocks)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("costa-sv", {"encoder.kind": "gcn"}, "only encoder.kind = hops"),
        ("costa-mv", {"encoder.kind": "hops", "sketch.kind": "svd"}, "only sketch.kind = countsketch, gaussian"),
        ("costa-mv", {"encoder.kind": "hops", "sketch.kind": "selection"}, "only sketch.kind = countsketch, gaussian"),
        ("costa-sv", {"encoder.kind": "hops", "sketch.kind": "none"}, "only sketch.kind = countsketch, gaussian"),
        ("grace", {"encoder.kind": "hops"}, "only costa-sv and costa-mv"),
        ("dgi", {}, "only costa-sv and costa-mv"),
    ],
)
def test_what_cannot_be_split_is_one_sentence(build, name, values, reason):
    method = build(0, name, **values)
    with pytest.raises(InputError, match=f"several processes cannot train this {name}: {reason}"):
        method.join(Ranks(0, 2))
    method.join(ALONE)


def test_without_torchrun_a_process_is_alone(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with training.joined(torch.device("cpu")) as ranks:
        assert ranks == ALONE
    assert not training.restarted()
