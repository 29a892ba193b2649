"""Where to compute, and how exactly."""

import os

import pytest
import torch

from costa import training
from costa.errors import InputError


def test_cuda_asked_for_and_absent(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert training.resolve_device("auto").type == "cpu"
    with pytest.raises(InputError, match="sees no CUDA device"):
        training.resolve_device("cuda")
    with pytest.raises(InputError, match="unknown device"):
        training.resolve_device("tpu")


def test_cuda_is_taken_where_it_is_unless_the_cpu_is_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [training.resolve_device(name).type for name in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


@pytest.mark.parametrize(("before", "then"), [(None, ":4096:8"), (":16:8", ":16:8")])
def test_deterministic_leaves_a_chosen_workspace_alone(monkeypatch, before, then):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", before or "")
    if before is None:
        monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    try:
        training.make_deterministic()
        assert torch.are_deterministic_algorithms_enabled()
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == then
    finally:
        torch.use_deterministic_algorithms(False)


def test_tensor_float_ends_with_its_block():
    products = torch.backends.cuda.matmul
    before = products.fp32_precision

    def fails():
        assert products.fp32_precision == "tf32"
        raise RuntimeError("within")

    with pytest.raises(RuntimeError, match="within"), training.tensor_float():
        fails()
    assert products.fp32_precision == before != "tf32"
