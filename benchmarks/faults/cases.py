"""The planted faults. Each is a setting of a program; the ideal setting has no fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CASES", "TIME_CAUSES", "Case", "Setting"]

TIME_CAUSES = (
    "input_in_main_process",
    "input_too_few_workers",
    "input_too_many_workers",
    "too_many_threads",
    "bound_to_few_cores",
    "input_collated_one_by_one",
    "input_workers_needless",
    "input_workers_restarted",
    "memory_saved_with_time",
    "input_small_files",
    "input_read_again",
    "input_skewed",
    "input_of_one_rank_slower",
    "input_files_one_by_one",
    "input_map_serial",
    "input_not_prefetched",
    "input_not_cached",
    "input_not_ready",
    "input_in_own_iterator",
    "input_padded",
    "product_on_one_core",
    "gradients_unused",
    "table_gradient_dense",
    "input_in_threads",
    "input_slow",
    "cold_cache",
    "copies_from_pageable_memory",
    "data_fits_gpu",
    "waits_for_device",
    "gpu_idle_at_lines",
    "gpu_call_slow",
    "gpu_decides_speed",
    "host_bound",
    "gpu_launch_bound",
    "problem_too_small",
    "backward_long",
    "generated_without_cache",
    "batch_small",
    "gpu_tensor_cores_idle",
    "matrix_sizes_unaligned",
    "convolutions_searched_again",
    "images_channels_first",
    "double_precision",
    "gpu_never_used",
    "gpu_one_idle",
    "saving_often",
    "steps_uneven",
    "fixed_costs_dominate",
    "python_bound",
    "framework_without_gpu",
    "work_repeated",
    "known_activity",
    "messages_small",
    "evaluation_long",
    "gradients_exchanged_often",
    "ranks_wait_for_each_other",
    "threads_in_turn",
    "steps_slow_down",
    "debug_mode",
    "batch_tiny",
    "workers_uneven",
    "waits_long",
    "run_stuck",
    "run_idle",
    "limit_too_short",
    "pool_restarted",
    "option_costly",
    "result_unused",
    "array_cut_late",
    "checked_seldom",
    "list_searched",
    "saved_again",
    "sorted_for_few",
    "plan_repeated",
    "index_missing",
    "connection_reopened",
    "requests_in_turn",
)
"""Kinds of findings that say why a program lost time; the first of them is the top cause."""

_ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Setting:
    """Options and environment of a program."""

    words: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_mb: int | None = None
    """Limit of a memory control group, including the page cache of the files that it reads."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A fault, or a control, which has no fault."""

    key: str
    """Number of the fault, with a letter if it is planted twice; `c…`: a control."""
    title: str
    program: str
    words: str = ""
    """Common to all settings."""
    environment: Mapping[str, str] = field(default_factory=lambda: _ONE_THREAD)
    faulty: Setting = Setting()
    ideal: Setting | None = None
    """None: there is no better setting."""
    expected: str | None = None
    """Kind of the finding that names the fault; None: there must be no cause of lost time."""
    option: tuple[str, str] | None = None
    """How to follow the finding's action: a pattern whose group is a number in the action, and the
    options of the program that take this number. None: the action gives the ideal setting."""
    peer: str = ""
    """TraceML's status that names the class of the fault; empty: TraceML has no such class, cannot
    trace the program, or (fault 10) needs too much memory."""
    ranks: int = 1
    slow_opens: bool = False
    """Opening a file of the program's data takes 2 ms."""
    probe: str = "auto"


_WORKERS = (r"num_workers\s*=\s*(\d+)", "--workers {} --persistent")
_BIG = "--size 448 --images 256"
_TWO_SIZES = ["320"] * 128 + ["96"] * 128
_ONE_LARGE = ["160"] * 99 + ["1200"]

CASES = (
    Case(
        key="1",
        title="slow decode in the main process",
        program="train_images",
        words=_BIG,
        faulty=Setting("--workers 0"),
        ideal=Setting("--workers 2 --persistent"),
        expected="input_in_main_process",
        option=_WORKERS,
        peer="INPUT_BOUND",
    ),
    Case(
        key="2",
        title="one worker, but two are needed",
        program="train_images",
        words=_BIG,
        faulty=Setting("--workers 1 --persistent"),
        ideal=Setting("--workers 2 --persistent"),
        expected="input_too_few_workers",
        option=_WORKERS,
        peer="INPUT_BOUND",
    ),
    Case(
        key="3",
        title="four times as many workers as cores",
        program="train_images",
        words="--size 160 --images 128",
        faulty=Setting("--workers 8 --persistent"),
        ideal=Setting("--workers 2 --persistent"),
        expected="input_too_many_workers",
        option=_WORKERS,
        peer="INPUT_BOUND",
    ),
    Case(
        key="4a",
        title="each worker starts a thread for each core of a larger node",
        program="train_images",
        words="--size 160 --smooth --workers 2 --persistent",
        faulty=Setting("--worker-threads 8"),
        ideal=Setting("--worker-threads 1"),
        expected="too_many_threads",
        peer="INPUT_BOUND",
    ),
    Case(
        key="4b",
        title="each process of a pool runs BLAS on all cores",
        program="sweep_matrices",
        environment={},
        ideal=Setting(environment=_ONE_THREAD | {"OPENBLAS_NUM_THREADS": "1"}),
        expected="too_many_threads",
    ),
    Case(
        key="5",
        title="a program bound to one of two cores",
        program="train_images",
        words=f"{_BIG} --workers 2 --persistent",
        faulty=Setting("--cpu 0"),
        ideal=Setting(),
        expected="bound_to_few_cores",
        peer="INPUT_BOUND",
    ),
    Case(
        key="6",
        title="a table in memory, collated row by row",
        program="train_table",
        faulty=Setting("--batches loader --workers 0"),
        ideal=Setting("--batches indexed"),
        expected="input_collated_one_by_one",
        peer="INPUT_BOUND",
    ),
    Case(
        key="7",
        title="a table in memory, and four workers that only pass it on",
        program="train_table",
        faulty=Setting("--batches loader --workers 4"),
        ideal=Setting("--batches indexed"),
        expected="input_workers_needless",
        peer="INPUT_BOUND",
    ),
    Case(
        key="8",
        title="workers that start again for each short epoch",
        program="train_images",
        words="--size 160 --images 64 --workers 2",
        ideal=Setting("--persistent"),
        expected="input_workers_restarted",
        peer="INPUT_BOUND",
    ),
    Case(
        key="9",
        title="many small files that are slow to open",
        program="train_files",
        slow_opens=True,
        faulty=Setting("--read files"),
        ideal=Setting("--read together"),
        expected="input_small_files",
        peer="INPUT_BOUND",
    ),
    Case(
        key="10",
        title="data that do not fit into the memory limit, and are read again in each epoch",
        program="train_tokens",
        words="--megabytes 1000 --seconds 10",
        faulty=Setting(memory_mb=800),
        ideal=Setting(memory_mb=2000),
        expected="input_read_again",
    ),
    Case(
        key="11",
        title="one image in a hundred has fifty times the pixels",
        program="train_images",
        words="--images 1000 --batch 8 --width 8 --depth 1 --workers 2 --persistent",
        faulty=Setting(f"--size {' '.join(_ONE_LARGE)}"),
        ideal=Setting("--size 160"),
        expected="input_skewed",
        peer="INPUT_BOUND",
    ),
    Case(
        key="12",
        title="all large images are on one of two ranks",
        program="train_images",
        words=f"--images 256 --size {' '.join(_TWO_SIZES)} --workers 1 --persistent",
        ranks=2,
        faulty=Setting("--blocks"),
        ideal=Setting(),
        expected="input_of_one_rank_slower",
        peer="INPUT_STRAGGLER",
    ),
    Case(
        key="19a",
        title="64-bit numbers, but 32-bit numbers are enough (PyTorch)",
        program="train_table",
        words="--batches indexed --width 1024",
        environment={},
        faulty=Setting("--dtype float64"),
        ideal=Setting("--dtype float32"),
        expected="double_precision",
    ),
    Case(
        key="19b",
        title="64-bit numbers, but 32-bit numbers are enough (JAX)",
        program="waves",
        environment={},
        faulty=Setting("--x64"),
        ideal=Setting(),
        expected="double_precision",
    ),
    Case(
        key="+saving",
        title="a checkpoint at every step",
        program="train_table",
        words="--batches indexed --batch 64 --width 1536",
        faulty=Setting("--save-every 1"),
        ideal=Setting("--save-every 100"),
        expected="saving_often",
        peer="RESIDUAL_HEAVY",
    ),
    Case(
        key="+python",
        title="arithmetic in loops of Python",
        program="orbits",
        faulty=Setting("--loops"),
        ideal=Setting(),
        expected="python_bound",
    ),
    Case(
        key="tf map",
        title="images decoded one at a time (tf.data)",
        program="train_pipeline",
        words="--from images",
        faulty=Setting(),
        ideal=Setting("--parallel --prefetch"),
        expected="input_map_serial",
    ),
    Case(
        key="tf files",
        title="small files that are slow to open, one after another (tf.data)",
        program="train_pipeline",
        words="--from records --prefetch",
        slow_opens=True,
        faulty=Setting(),
        ideal=Setting("--parallel"),
        expected="input_files_one_by_one",
    ),
    Case(
        key="tf prefetch",
        title="an instrument is read only while the training waits (tf.data)",
        program="train_pipeline",
        words="--from generator --width 1024",
        faulty=Setting(),
        ideal=Setting("--prefetch"),
        expected="input_not_prefetched",
    ),
    Case(
        key="tf cache",
        title="the same images decoded again in each epoch (tf.data)",
        program="train_pipeline",
        words="--from images --parallel --prefetch",
        faulty=Setting(),
        ideal=Setting("--cache"),
        expected="input_not_cached",
    ),
    Case(
        key="tf keras",
        title="images decoded one at a time (Keras)",
        program="train_pipeline",
        words="--from images --fit --prefetch",
        faulty=Setting(),
        ideal=Setting("--parallel --cache"),
        expected="input_not_ready",
    ),
    Case(
        key="+iterator",
        title="batches unpacked between the steps (JAX)",
        program="train_unpacked",
        environment={},
        faulty=Setting(),
        ideal=Setting("--ahead"),
        expected="input_in_own_iterator",
    ),
    Case(
        key="grain loader",
        title="records unpacked without workers (Grain's DataLoader)",
        program="train_streamed",
        words="--by loader",
        environment={},
        faulty=Setting(),
        ideal=Setting("--workers 2"),
        expected="input_in_main_process",
    ),
    Case(
        key="control compute",
        title="a network that uses all cores, with enough workers",
        program="train_images",
        words="--size 32 --width 64 --depth 4 --batch 64 --workers 1 --persistent",
        environment={},
        peer="COMPUTE_BOUND",
    ),
    Case(
        key="control workers",
        title="decoding for which one worker is enough",
        program="train_images",
        words="--size 48 --width 64 --depth 4 --batch 32 --workers 1 --persistent",
        peer="COMPUTE_BOUND",
    ),
    Case(
        key="control saving",
        title="a checkpoint at every 20th step",
        program="train_table",
        words="--batches indexed --batch 1024 --width 768 --save-every 20",
        peer="COMPUTE_BOUND",
    ),
    Case(
        key="control compile",
        title="a simulation in JAX that takes seconds to compile",
        program="waves",
        words="--substeps 20 --seconds 15",
        environment={},
    ),
    Case(
        key="control pipeline",
        title="a pipeline of tf.data that is ahead of the training",
        program="train_pipeline",
        words="--from images --size 32 --parallel --prefetch --flip --width 1536",
    ),
    Case(
        key="control keras",
        title="a pipeline that is ahead of Keras",
        program="train_pipeline",
        words="--from images --size 32 --parallel --prefetch --flip --width 1536 --fit",
    ),
    Case(
        key="control unpacked",
        title="batches in JAX that take little time compared with the steps",
        program="train_unpacked",
        words="--width 2048 --packed 1",
        environment={},
    ),
    Case(
        key="control grain",
        title="records of Grain that take little time compared with the steps",
        program="train_streamed",
        words="--values 4 --turns 1 --width 2048 --workers 1",
        environment={},
    ),
    Case(
        key="control short",
        title="a short job",
        program="orbits",
        words="--seconds 2",
    ),
    Case(
        key="m off",
        title="slow decode in the main process, recorded without the probe",
        program="train_images",
        words=_BIG,
        faulty=Setting("--workers 0"),
        probe="off",
    ),
    Case(
        key="m doubles",
        title="64-bit numbers, recorded without the probe",
        program="train_table",
        words="--batches indexed --width 1024 --dtype float64",
        environment={},
        probe="off",
    ),
)
"""Faults by their number, then the controls (`c`), then faults whose signal is missing (`m`): Teho
must not name a cause for them."""
