"""The exception a user reads, and memory that ran out."""

import pytest
import torch

from costa.errors import InputError, is_out_of_memory


def test_an_input_error_is_a_value_error():
    with pytest.raises(ValueError, match=r"^give k\.$"):
        raise InputError("give k.")


@pytest.mark.parametrize(
    "problem",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried to …"),
    ],
)
def test_memory_that_ran_out_is_recognised(problem):
    assert is_out_of_memory(problem)


def test_what_torch_says_on_a_cpu_is_recognised():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize(
    "problem", [InputError("k is too large."), RuntimeError("shapes do not match"), KeyError("memory")]
)
def test_other_problems_are_not(problem):
    assert not is_out_of_memory(problem)
