import pytest
import torch

from costa.graphs.synthetic import planted_partition
from reproduction.bench import contestants

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "contestant",
    [*contestants.standard(torch.device("cuda")), contestants.SV_COUNTSKETCH],
    ids=lambda contestant: contestant.name,
)
def test_every_contestant_trains(contestant):
    graph = planted_partition(80, 2, 8, seed=0)
    trainee = contestant.build(graph, CPU)
    before = trainee.embed()
    trainee.run(2)
    after = trainee.embed()
    assert after.shape == (80, 128)
    assert after.isfinite().all()
    assert not torch.equal(before, after)
