import re
from dataclasses import replace

import pytest
import torch

from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from reproduction.bench import profile
from reproduction.bench.contestants import SV

CPU = torch.device("cpu")
CEILINGS = profile.Ceilings(products=1e12, bytes=1e11, lanes=1e10)


@pytest.fixture(scope="module")
def trainee():
    return SV.build(planted_partition(60, 2, 8, seed=0), CPU)


def test_a_cpu_is_refused_with_a_sentence():
    with pytest.raises(InputError, match=r"^bench-profile needs a GPU, and this device is a CPU; run it with --device"):
        profile.profile_epoch(CPU, None)


def test_every_part_has_a_floor_that_a_faster_card_lowers(trainee):
    floors = profile._floors(trainee, CEILINGS)
    assert list(floors) == list(profile.PARTS)
    assert min(floors.values()) > 0
    faster = profile.Ceilings(2 * CEILINGS.products, 2 * CEILINGS.bytes, 2 * CEILINGS.lanes)
    assert profile._floors(trainee, faster) == pytest.approx({part: floor / 2 for part, floor in floors.items()})


def test_the_loss_moves_nothing_and_the_sparse_products_only_move(trainee):
    floors = profile._floors(trainee, CEILINGS)
    slow = profile._floors(trainee, replace(CEILINGS, bytes=CEILINGS.bytes / 1e6))
    assert slow["loss"] == floors["loss"]
    assert slow["sparse"] == pytest.approx(1e6 * floors["sparse"])


@pytest.mark.parametrize(
    ("kernel", "part"),
    [
        ("_dense_product_kernel", "sketch"),
        ("_logsumexp_rows", "loss"),
        ("void cusparse::csrmm_kernel", "sparse"),
        ("sm90_xmma_gemm_f32f32", "dense"),
        ("vectorized_elementwise_kernel", "rest"),
    ],
)
def test_a_kernel_belongs_to_the_first_part_that_its_name_matches(kernel, part):
    assert next(name for name, form in profile.PARTS.items() if re.search(form, kernel)) == part
