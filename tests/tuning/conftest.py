"""A small graph, a small tuning job and its search."""

import pytest
import torch

from costa.graphs.synthetic import planted_partition
from costa.methods import get_method
from costa.tuning import jobs
from costa.tuning import study as studies


@pytest.fixture(scope="module")
def graph():
    return planted_partition(120, 3, 8, degree=4, homophily=0.6, signal=1.0, seed=0)


@pytest.fixture(scope="module")
def a_job():
    """A function that makes a job of three epochs, one seed and two splits on the CPU."""

    def make(graph, method="costa-sv", **options):
        small = {"epochs": 3, "seeds": 1, "splits": 2, "final_splits": 2} | options
        return jobs.TuningJob(graph, get_method(method), torch.device("cpu"), **small)

    return make


@pytest.fixture(scope="module")
def searched():
    """A function that opens a study and searches it: the study, and the trials that ended."""

    def search(path, job, trials, seed=0):
        study = studies.open_study(path, job, seed=seed)
        return study, list(studies.search(job, study, trials))

    return search
