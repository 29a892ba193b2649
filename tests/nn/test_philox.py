"""Philox against its published answers, by way of plain whole numbers; the laws of the matrices made from it."""

import itertools
import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from costa.nn import philox

# Six standard deviations: for a normal average, a false alarm in 1e-9 an entry.
SIGMAS = 6.0
FLOAT64 = torch.empty(0, dtype=torch.float64)
SEEDS = [0, 7, 2**32 - 1, 2**32, 0x299F31D0A4093822, 2**63 - 2]


def philox_4x32_10(counter: list[int], key: list[int]) -> list[int]:
    """The generator as its paper defines it, in whole numbers of any size."""
    (x0, x1, x2, x3), (k0, k1) = counter, key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * x0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * x2, 2**32)
        x0, x1, x2, x3 = high1 ^ x1 ^ k0, low1, high0 ^ x3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return [x0, x1, x2, x3]


def plain_words(seed: int, group: int, row: int, stream: int) -> list[int]:
    return philox_4x32_10([group, row, stream, 0], [seed % 2**32, seed // 2**32])


def plain_sparse_row(seed: int, row: int, n: int, density: float) -> dict[int, int]:
    """Column → sign."""
    entries, column, group = {}, -1, 0
    while True:
        for word in plain_words(seed, group, row, stream=1):
            u = (word // 2 + 0.5) / 2**31
            column += 1 + math.floor(math.log(u) / math.log1p(-density))
            if column >= n:
                return entries
            entries[column] = 2 * (word % 2) - 1
        group += 1


def sparse_matrix(seed: int, first: int, last: int, n: int, density: float) -> Tensor:
    starts, columns, signs = philox.sparse(seed, first, last, n, density, FLOAT64)
    matrix = torch.zeros(last - first, n, dtype=torch.float64)
    for row in range(last - first):
        here = slice(int(starts[row]), int(starts[row + 1]))
        matrix[row, columns[here]] = signs[here]
    return matrix


def matrix_of(kind: str, seed: int, first: int, last: int, n: int) -> Tensor:
    if kind == "sparse":
        return sparse_matrix(seed, first, last, n, 0.1)
    return getattr(philox, kind)(seed, first, last, n, FLOAT64)


# --- words ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_the_plain_twin_gives_the_published_answers(counter: str, key: str, answer: str) -> None:
    words = philox_4x32_10([int(word, 16) for word in counter.split()], [int(word, 16) for word in key.split()])
    assert [f"{word:08x}" for word in words] == answer.split()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stream", [0, 1])
def test_words_equal_the_plain_twins(seed: int, stream: int) -> None:
    generator = torch.Generator().manual_seed(seed % 1000)
    group, row = torch.randint(2**32, (2, 20), generator=generator)
    group[:3], row[1:4] = torch.tensor([0, 2**31, 2**32 - 1]), torch.tensor([2**32 - 1, 0, 2**31])
    expected = [plain_words(seed, g, r, stream) for g, r in zip(group.tolist(), row.tolist(), strict=True)]
    assert philox.words(seed, group, row, stream).tolist() == expected


def test_groups_and_rows_broadcast_and_are_left_as_they_were() -> None:
    group, row = torch.arange(5)[None, :], torch.arange(3)[:, None]
    words = philox.words(1, group, row)
    assert words.shape == (3, 5, 4)
    assert words[2, 4].tolist() == plain_words(1, 4, 2, stream=0)
    assert torch.equal(group, torch.arange(5)[None, :])
    assert torch.equal(row, torch.arange(3)[:, None])


# --- which word makes which entry -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_gaussian_entries_come_from_their_words(seed: int) -> None:
    n = 21
    entries = philox.gaussian(seed, 5, 8, n, FLOAT64)
    for row in range(5, 8):
        for column in range(n):
            word = plain_words(seed, column // 8, row, stream=0)[column % 8 // 2]
            radius = math.sqrt(-2 * math.log((word // 2**16 + 0.5) / 2**16))
            quarter, within = divmod(word % 2**16, 2**14)
            angle = (quarter + (within - 8191.5) / 2**14) * math.pi / 2
            expected = radius * (math.sin(angle) if column % 2 else math.cos(angle))
            assert float(entries[row - 5, column]) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_signs_come_from_their_bits(seed: int) -> None:
    n = 300
    entries = philox.rademacher(seed, 2, 4, n, FLOAT64)
    for row in (2, 3):
        words = [word for group in range(3) for word in plain_words(seed, group, row, stream=0)]
        assert entries[row - 2].tolist() == [2 * (words[c // 32] >> c % 32 & 1) - 1 for c in range(n)]


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_entries_come_from_their_words(seed: int) -> None:
    n, density = 200, 0.07
    matrix = sparse_matrix(seed, 3, 9, n, density)
    for row in range(3, 9):
        found = {int(column): int(matrix[row - 3, column]) for column in matrix[row - 3].nonzero()}
        assert found == plain_sparse_row(seed, row, n, density)


def test_a_sparse_row_goes_on_when_its_first_draws_fall_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """56 gaps are drawn at first for the 30 non-zeros expected; one row in a hundred thousand needs more."""
    seed, row, n, density = 0, 194_819, 600, 0.05
    asked = []
    words = philox.words

    def counted(*arguments: object, **options: object) -> Tensor:
        asked.append(arguments)
        return words(*arguments, **options)

    monkeypatch.setattr(philox, "words", counted)
    alone = sparse_matrix(seed, row, row + 1, n, density)
    assert len(asked) == 2
    found = {int(column): int(alone[0, column]) for column in alone[0].nonzero()}
    assert len(found) >= 56
    assert found == plain_sparse_row(seed, row, n, density)
    # its neighbours, for which the further draws are past the end, do not change by its company
    together = sparse_matrix(seed, row - 2, row + 2, n, density)
    assert torch.equal(
        together, torch.cat([sparse_matrix(seed, r, r + 1, n, density) for r in range(row - 2, row + 2)])
    )


@pytest.mark.parametrize("kind", ["gaussian", "rademacher", "sparse"])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 300])
def test_any_split_into_rows_is_the_same_matrix_and_more_columns_change_none(kind: str, n: int) -> None:
    whole = matrix_of(kind, 12, 0, 11, n)
    assert whole.shape == (11, n)
    for cuts in ([0, 11], [0, 1, 11], [0, 4, 5, 9, 11], list(range(12))):
        parts = [matrix_of(kind, 12, first, last, n) for first, last in itertools.pairwise(cuts)]
        assert torch.equal(torch.cat(parts), whole)
    assert torch.equal(matrix_of(kind, 12, 0, 11, n + 130)[:, :n], whole)


@pytest.mark.parametrize("kind", ["gaussian", "rademacher", "sparse"])
def test_every_bit_of_the_seed_counts(kind: str) -> None:
    matrices = [matrix_of(kind, seed, 0, 4, 64) for seed in (3, 3 + 2**31, 3 + 2**32, 3 + 2**62)]
    assert all(not torch.equal(a, b) for i, a in enumerate(matrices) for b in matrices[:i])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_dtype_is_the_same_matrix_rounded(dtype: torch.dtype) -> None:
    like = torch.empty(0, dtype=dtype)
    exact, rounded = philox.gaussian(1, 0, 20, 50, FLOAT64), philox.gaussian(1, 0, 20, 50, like)
    assert rounded.dtype == dtype
    torch.testing.assert_close(rounded.double(), exact, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert torch.equal(philox.rademacher(1, 0, 20, 50, like).double(), philox.rademacher(1, 0, 20, 50, FLOAT64))


# --- laws -----------------------------------------------------------------------------------------------------


def test_gaussians_follow_the_normal_law() -> None:
    entries = philox.gaussian(5, 0, 50, 4001, FLOAT64).flatten()
    assert stats.kstest(entries.numpy(), "norm").pvalue > 1e-4
    assert abs(float(entries.mean())) < SIGMAS / math.sqrt(entries.numel())
    assert abs(float(entries.square().mean()) - 1) < SIGMAS * math.sqrt(2 / entries.numel())


def test_the_gaussians_bound_and_variance_are_the_stated_ones() -> None:
    """Over all words, by their halves: half of the mean square radius, since a turn of θ has mean square cosine ½."""
    radius, cosine, sine = philox._polar(torch.float64, torch.device("cpu"))
    assert float(radius.max()) <= 4.86
    assert float(radius.square().mean() * cosine.square().mean()) == pytest.approx(1 - 5e-6, abs=1e-6)
    for mean in (cosine.mean(), sine.mean(), (cosine * sine).mean()):
        assert abs(float(mean)) < 1e-12


@pytest.mark.parametrize("kind", ["gaussian", "rademacher"])
def test_rows_columns_and_their_squares_are_uncorrelated(kind: str) -> None:
    """Columns of one counter, of one word and of neighbouring counters are among them."""
    few, many = 48, 3000
    for entries in (matrix_of(kind, 6, 0, few, many), matrix_of(kind, 6, 0, many, few).T):
        assert_uncorrelated(entries)
        if kind == "gaussian":  # the pair of a word shares its radius
            assert_uncorrelated(entries.square())


def assert_uncorrelated(variables: Tensor) -> None:
    correlation = torch.corrcoef(variables).fill_diagonal_(0)
    assert float(correlation.abs().max()) < SIGMAS / math.sqrt(variables.shape[1])


def test_different_seeds_are_uncorrelated() -> None:
    rows = torch.cat([philox.gaussian(seed, 0, 1, 4000, FLOAT64) for seed in (0, 1, 2, 2**32, 2**33, 2**62)])
    assert_uncorrelated(rows)


def test_signs_are_balanced() -> None:
    signs = philox.rademacher(8, 0, 40, 1000, FLOAT64)
    assert set(signs.flatten().tolist()) == {-1.0, 1.0}
    assert stats.binomtest(int((signs > 0).sum()), signs.numel(), 0.5).pvalue > 1e-4
    by_bit = (signs[:, :960].reshape(-1, 32) > 0).sum(0)
    assert stats.chisquare(by_bit.numpy()).pvalue > 1e-4


@pytest.mark.parametrize("density", [0.02, 0.3])
def test_gaps_are_geometric_and_their_signs_balanced(density: float) -> None:
    starts, columns, signs = philox.sparse(9, 0, 30, 20_000, density, FLOAT64)
    gaps = torch.cat([columns[a:b].diff() for a, b in itertools.pairwise(starts)])
    longest = math.ceil(3 / density)
    counts = torch.bincount(gaps.clamp(max=longest), minlength=longest + 1)[1:]
    law = stats.geom(density)
    expected = torch.tensor([*law.pmf(range(1, longest)), law.sf(longest - 1)]) * gaps.numel()
    assert stats.chisquare(counts.numpy(), expected.numpy()).pvalue > 1e-4
    assert stats.binomtest(int((signs > 0).sum()), signs.numel(), 0.5).pvalue > 1e-4


def test_a_density_of_one_leaves_no_gap() -> None:
    starts, columns, _ = philox.sparse(4, 0, 3, 50, 1.0, FLOAT64)
    assert starts.tolist() == [0, 50, 100, 150]
    assert torch.equal(columns, torch.arange(50).repeat(3))


def test_a_row_can_be_empty_and_a_gap_longer_than_any_whole_number() -> None:
    starts, columns, signs = philox.sparse(4, 0, 3, 50, 1e-300, FLOAT64)
    assert starts.tolist() == [0, 0, 0, 0]
    assert columns.numel() == signs.numel() == 0
