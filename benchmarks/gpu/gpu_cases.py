"""The planted faults that appear only on a GPU, each with the setting without the fault."""

from __future__ import annotations

from cases import Case, Setting

__all__ = ["GPU_CASES", "name_of"]

_LARGE = "--rows 8192 --width 8192 --depth 1"

GPU_CASES = (
    Case(
        key="13",
        title="copies from memory that is not pinned",
        program="train_vectors",
        words=f"{_LARGE} --data loader --tf32",
        ideal=Setting("--pin --workers 4"),
        expected="copies_from_pageable_memory",
    ),
    Case(
        key="14",
        title="the program reads a result from the GPU in each layer",
        program="train_vectors",
        # On an H200, smaller layers are launched so slowly that reading the results costs little.
        words="--rows 2048 --width 2048 --depth 24 --tf32",
        faulty=Setting("--look"),
        ideal=Setting(),
        expected="waits_for_device",
    ),
    Case(
        key="15",
        title="a thousand tiny operations in each step",
        program="train_vectors",
        words="--rows 32 --width 256 --pieces 1000",
        ideal=Setting("--graph"),
        expected="host_bound",
    ),
    Case(
        key="16",
        title="a problem too small for a GPU",
        program="train_vectors",
        words="--rows 100 --width 10 --depth 1",
        ideal=Setting("--on cpu"),
        expected="problem_too_small",
    ),
    Case(
        key="17",
        title="small systems solved one by one",
        program="solve_systems",
        ideal=Setting("--together"),
        expected="host_bound",
    ),
    Case(
        key="18",
        title="products of matrices without tensor cores",
        program="train_vectors",
        words=_LARGE,
        ideal=Setting("--tf32"),
        expected="gpu_tensor_cores_idle",
    ),
    Case(
        key="20",
        title="a GPU that the program never uses",
        program="train_vectors",
        words="--rows 1024 --width 1024",
        faulty=Setting("--on cpu"),
        ideal=Setting(),
        expected="framework_without_gpu",
    ),
)
_FOLDERS = {
    "13": "pageable-copies",
    "14": "ping-pong",
    "15": "tiny-kernels",
    "16": "problem-too-small",
    "17": "unbatched-solve",
    "18": "no-tensor-cores",
    "20": "unused-gpu",
}


def name_of(case: Case) -> str:
    """Return the name of a fault's recording: the same as of its generated recording."""
    return f"{case.key}-{_FOLDERS[case.key]}"
