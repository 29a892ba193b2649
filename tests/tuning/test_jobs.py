"""What a tuning job refuses, and why an attempt has no result."""

import sys

import optuna
import pytest
import torch

from costa.errors import InputError
from costa.methods import get_method
from costa.tuning import jobs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": get_method("raw")}, "raw has no loss, so there is nothing to tune"),
        ({"guide": "test"}, "--guide must be strict or tuned, not 'test'"),
        ({"given": {"loss.tua": "0.5"}}, r"unknown setting 'loss.tua' \(--set\); did you mean loss.tau"),
        (
            {"given": {"train.epochs": "50"}},
            "train.epochs cannot be fixed, because the search chooses it; limit it with --epochs",
        ),
    ],
)
def test_a_job_that_cannot_be_searched_is_refused(graph, a_job, change, message):
    with pytest.raises(InputError, match=message):
        jobs.TuningJob(**vars(a_job(graph)) | change).check()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "has no labels of two classes, so settings cannot be validated"),
        (torch.full((120,), -1), "settings cannot be validated"),
        (torch.where(torch.arange(120) < 9, torch.arange(120) % 2, -1), "needs at least 10 labelled nodes"),
    ],
)
def test_a_job_needs_labels(graph, a_job, y, message):
    bare = graph.clone()
    bare.y = y
    with pytest.raises(InputError, match=message):
        a_job(bare).check()


def test_only_the_strict_guide_chooses_strict_settings(graph, a_job):
    assert a_job(graph).presets == ("strict", "tuned")
    assert a_job(graph, guide="tuned").presets == ("tuned",)


def test_fixed_settings_are_read_as_their_types(graph, a_job):
    given = {"encoder.width": "64", "augment.edge_rate": "0.1,0.2", "loss.tau": 0.5}
    assert a_job(graph, "costa-mv", given=given).kept == {
        "encoder.width": 64,
        "augment.edge_rate": [0.1, 0.2],
        "loss.tau": 0.5,
    }


def test_few_labels_are_said(graph, a_job):
    few = graph.clone()
    few.y = torch.where(torch.arange(120) < 30, graph.y, -1)
    assert a_job(graph).too_few() is None
    assert a_job(few).too_few().startswith("strict-10-10-80 learns 3 classes from only 3 nodes")


def test_an_attempt_gives_its_result_or_the_reason(graph, a_job):
    def failing(problem):
        def work():
            raise problem

        return work

    job = a_job(graph)
    assert jobs.attempt(job, lambda: 7) == 7
    assert jobs.attempt(job, failing(jobs.TrainingFailed("collapsed"))) == "collapsed"
    assert jobs.attempt(job, failing(InputError("bad settings."))) == "bad settings."
    assert jobs.attempt(job, failing(torch.OutOfMemoryError("CUDA out of memory."))) == jobs.OUT_OF_MEMORY
    assert jobs.attempt(job, failing(optuna.TrialPruned())) == "below the median"
    with pytest.raises(RuntimeError, match="shapes"):
        jobs.attempt(job, failing(RuntimeError("shapes do not match")))


def test_without_optuna_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"pip install 'costa-gcl\[tune\]'"):
        jobs.import_optuna()
