"""Who gives way to whom."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SAME_LOSS", "SUPPRESSIONS", "Suppression"]


class Suppression(NamedTuple):
    """A finding that makes others pointless.

    It mutes them for the GPUs and nodes that it speaks of; where it speaks of the
    whole run, for the whole run.
    """

    by: str
    mutes: tuple[str, ...]
    why: str


_INPUT = (
    "input_read_again",
    "input_small_files",
    "input_workers_needless",
    "input_workers_restarted",
    "input_collated_one_by_one",
    "input_skewed",
    "input_too_many_workers",
    "input_too_few_workers",
    "input_in_main_process",
    "input_slow",
)
"""Why a program waits for its data, each of which may be part of the ones after it."""
SAME_LOSS = {
    "data_fits_gpu": frozenset((*_INPUT, "input_of_one_rank_slower", "copies_from_pageable_memory"))
}
"""Another way to the time that these promise already, where one of them stands above it."""
_STARVED = ("gpu_low_use", "io_wait_gpu_idle", "cpu_busy_gpu_idle")
"""How it looks from the GPU."""

SUPPRESSIONS: tuple[Suppression, ...] = (
    Suppression(
        "job_too_short",
        (
            "gpu_one_idle",
            "gpu_held_idle",
            "gpu_used_only_at_first",
            "gpu_low_use",
            "io_wait_gpu_idle",
            "cpu_busy_gpu_idle",
            "communication_bound",
            "rank_imbalance",
            "task_imbalance",
            "gpu_pcie_bound",
            "gpu_launch_bound",
            "gpu_slow_fp64",
            "gpu_tensor_cores_idle",
            "gpu_sm_low",
            "memory_grows",
            "cores_taken_by_others",
            "serial_program",
            "cores_unused",
            "memory_overasked",
            "gpu_throttled",
            "gpu_power_capped",
            "gpu_memory_bound",
            "gpu_low_occupancy",
            "batch_small",
            "cold_cache",
            "steps_uneven",
        ),
        "means and shares over a short run are chance",
    ),
    Suppression(
        "framework_without_gpu",
        (
            "gpu_never_used",
            "gpu_held_idle",
            "gpu_low_use",
            "io_wait_gpu_idle",
            "cpu_busy_gpu_idle",
            "copies_from_pageable_memory",
            "data_fits_gpu",
            "waits_for_device",
            "problem_too_small",
            "batch_small",
        ),
        "it says why the GPU has nothing to do",
    ),
    Suppression(
        "gpu_never_used",
        (
            "gpu_used_only_at_first",
            "gpu_one_idle",
            "gpu_held_idle",
            "gpu_low_use",
            "io_wait_gpu_idle",
            "cpu_busy_gpu_idle",
            "communication_bound",
            "rank_imbalance",
            "gpu_sm_low",
            "gpu_low_occupancy",
            "copies_from_pageable_memory",
            "data_fits_gpu",
            "waits_for_device",
            "problem_too_small",
            "batch_small",
        ),
        "never is less than low, and a GPU that the program does not use waits for nothing",
    ),
    Suppression(
        "gpu_used_only_at_first",
        (
            "gpu_one_idle",
            "gpu_low_use",
            "io_wait_gpu_idle",
            "cpu_busy_gpu_idle",
            "communication_bound",
            "rank_imbalance",
            "batch_small",
        ),
        "the mean is low because the GPU was given up, not because it was fed badly",
    ),
    Suppression(
        "gpu_one_idle",
        ("gpu_held_idle", "gpu_low_use", "communication_bound", "rank_imbalance"),
        "idle is less than low, and uneven",
    ),
    Suppression(
        "gpu_held_idle",
        (
            "gpu_low_use",
            "io_wait_gpu_idle",
            "cpu_busy_gpu_idle",
            "communication_bound",
            "rank_imbalance",
            "gpu_sm_low",
            "gpu_low_occupancy",
            "copies_from_pageable_memory",
            "data_fits_gpu",
            "waits_for_device",
            "problem_too_small",
            "batch_small",
        ),
        "a GPU that the program computes nothing on waits for nothing",
    ),
    Suppression(
        "input_of_one_rank_slower",
        (
            *_INPUT,
            *_STARVED,
            "rank_imbalance",
            "communication_bound",
        ),
        "the other ranks wait for this one",
    ),
    Suppression(
        "problem_too_small",
        ("waits_for_device", "gpu_launch_bound", "gpu_low_use", "python_bound", "batch_small"),
        "it says why",
    ),
    Suppression(
        "bound_to_few_cores",
        (
            "input_too_many_workers",
            "input_too_few_workers",
            "input_in_main_process",
            "input_slow",
            "too_many_threads",
            "serial_program",
            "cores_unused",
            "python_bound",
        ),
        "with all its cores it may be another program",
    ),
    Suppression(
        "cores_taken_by_others",
        ("cpu_busy_gpu_idle", "serial_program", "cores_unused"),
        "the program could not have used the cores",
    ),
    Suppression(
        "input_read_again",
        (*_INPUT[1:], *_STARVED),
        "the storage sets the pace",
    ),
    Suppression(
        "input_small_files",
        (*_INPUT[2:], *_STARVED),
        "the files set the pace",
    ),
    Suppression(
        "input_workers_needless",
        (*_INPUT[3:], *_STARVED),
        "the workers themselves are too many",
    ),
    Suppression(
        "input_workers_restarted",
        (
            "input_skewed",
            "input_too_few_workers",
            "input_too_many_workers",
            "input_slow",
            *_STARVED,
        ),
        "the waiting is for their start",
    ),
    Suppression(
        "input_collated_one_by_one",
        ("input_in_main_process", "input_slow", "python_bound", *_STARVED),
        "what takes the time need not be done at all",
    ),
    Suppression(
        "input_skewed",
        ("input_too_few_workers", "input_in_main_process", "input_slow", *_STARVED),
        "the other batches are there in time",
    ),
    Suppression(
        "input_too_many_workers",
        ("input_too_few_workers", "input_slow", "too_many_threads", *_STARVED),
        "it says which threads are too many",
    ),
    Suppression(
        "too_many_threads",
        ("cores_unused", "input_too_few_workers", "input_in_main_process", "input_slow"),
        "threads that take turns are slow at all they do",
    ),
    Suppression(
        "input_too_few_workers",
        ("input_slow", "serial_program", "cores_unused", *_STARVED),
        "it says what to change, and what the cores are for",
    ),
    Suppression(
        "input_in_main_process",
        ("input_slow", "serial_program", "cores_unused", *_STARVED),
        "it says what to change, and what the cores are for",
    ),
    Suppression("input_slow", _STARVED, "it says what it waits for"),
    Suppression(
        "copies_from_pageable_memory", ("gpu_low_use", "batch_small"), "it says what it waits for"
    ),
    Suppression("waits_for_device", ("gpu_low_use", "batch_small"), "it says what it waits for"),
    Suppression("fixed_costs_dominate", ("batch_small",), "most of the time there were no batches"),
    Suppression(
        "io_wait_gpu_idle", ("communication_bound", "batch_small"), "storage explains the waiting"
    ),
    Suppression("cpu_busy_gpu_idle", ("communication_bound",), "the CPU explains the waiting"),
    Suppression(
        "communication_bound",
        ("gpu_pcie_bound", "gpu_launch_bound", "gpu_sm_low", "gpu_low_occupancy"),
        "kernels that wait for other GPUs are small, and the traffic is theirs",
    ),
    Suppression(
        "gpu_pcie_bound",
        ("gpu_sm_low", "gpu_low_occupancy", "batch_small"),
        "waiting for copies explains why there was little work",
    ),
    Suppression(
        "gpu_launch_bound",
        ("gpu_sm_low", "gpu_low_occupancy"),
        "it says why few multiprocessors had work",
    ),
    Suppression(
        "gpu_sm_low",
        ("gpu_low_occupancy",),
        "multiprocessors without work hold no warps either",
    ),
    Suppression("out_of_memory", ("memory_near_limit",), "the limit was reached"),
    Suppression(
        "memory_grows",
        ("memory_near_limit", "memory_overasked", "batch_small"),
        "the next run may need more or less, by how long it is",
    ),
    Suppression("serial_program", ("cores_unused",), "it says why the cores are unused"),
)
"""Who gives way to whom; judged in this order, before all other rules."""
