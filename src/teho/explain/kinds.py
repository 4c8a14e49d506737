"""Kinds of findings that belong together, for the rules that mute them."""

from __future__ import annotations

__all__ = ["DEEP_GPU", "GPU_PROGRAM", "INPUT_CAUSES", "STARVED", "UNEVEN", "input_causes_after"]

INPUT_CAUSES = (
    "input_read_again",
    "input_small_files",
    "input_workers_needless",
    "input_workers_restarted",
    "input_collated_one_by_one",
    "input_skewed",
    "input_too_many_workers",
    "input_too_few_workers",
    "input_in_threads",
    "input_in_main_process",
    "input_files_one_by_one",
    "input_map_serial",
    "input_not_prefetched",
    "input_not_cached",
    "input_slow",
)
"""Why a program waits for data. Each cause may be a part of the causes after it."""
STARVED = ("gpu_low_use", "io_wait_gpu_idle", "cpu_busy_gpu_idle")
"""What a GPU shows while the program waits for data."""
GPU_PROGRAM = (
    "copies_from_pageable_memory",
    "data_fits_gpu",
    "waits_for_device",
    "problem_too_small",
    "batch_small",
)
"""How a program uses its GPU."""
UNEVEN = ("communication_bound", "rank_imbalance")
"""How several GPUs share the work."""
DEEP_GPU = ("gpu_sm_low", "gpu_low_occupancy")
"""How much of a busy GPU had work."""


def input_causes_after(kind: str) -> tuple[str, ...]:
    """Return the input causes that may include this one."""
    return INPUT_CAUSES[INPUT_CAUSES.index(kind) + 1 :]
