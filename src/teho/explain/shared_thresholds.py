"""Thresholds that do not belong to a single rule."""

from __future__ import annotations

from teho.model.finding import Threshold

__all__ = [
    "DIGEST",
    "EVERY_RULE",
    "GOOD_USE",
    "MOST_OF_THE_TIME",
    "OUTLIERS",
    "PRESENT",
    "ROOFLINE",
    "SHARED",
    "SMALL_FILES",
    "TEN_SAMPLES",
    "chosen",
]


def chosen(value: float, unit: str, reason: str) -> Threshold:
    """Return a threshold without an outside source: Teho's own choice, and the reason."""
    return Threshold(value, unit, f"Teho's own choice: {reason}")


MOST_OF_THE_TIME = Threshold(
    50.0,
    "%",
    "SageMaker's profiler rules report a problem if it lasts for more than 50 % of the time",
)

TEN_SAMPLES = chosen(
    0.5,
    "s",
    "Teho looks about 20 times per second at what the program does, so this time has about 10 "
    "samples",
)

EVERY_RULE = "every_rule"
"""Section of thresholds that all rules share."""
OUTLIERS = "outliers"
"""Section for sorting tables of many devices; rules do not read it."""
ROOFLINE = "roofline"
"""Section of the roofline plot; rules do not read it."""
GOOD_USE = "good_use"
"""Section for the verdict that a run used its cores and GPUs well; rules do not read it."""
PRESENT = "present"
"""Section of the first line of `teho top` about the present moment; rules do not read it."""
SMALL_FILES = "small_files"
"""Section for data on network file systems: `teho doctor --data` and `teho stage` read it."""
DIGEST = "digest"
"""Section of `teho jobs` and `teho digest`, which judge jobs by their accounting."""

_EVERY_RULE = {
    "covered_percent_min": chosen(
        50.0, "%", "Teho uses a signal only if it was recorded for at least half of the run"
    ),
    "at_work_percent": Threshold(
        50.0,
        "%",
        "as in the rule gpu_low_use: if a GPU is busy for less than half of a short period, Teho "
        "counts this period as waiting time",
    ),
    "at_work_time_percent": MOST_OF_THE_TIME,
    "at_work_run_percent": chosen(
        25.0,
        "%",
        "if a GPU works for less than a quarter of the run, other findings matter more",
    ),
    "lost_percent": Threshold(
        10.0,
        "%",
        "TraceML, a profiler for training, warns if waiting for data takes 10 % of the step "
        "time or more; Teho uses this limit for all lost time",
    ),
    "lost_critical_percent": chosen(
        50.0, "%", "above this limit, the program loses more than half of the run time"
    ),
    "lost_beside_gpus_percent": Threshold(
        20.0,
        "%",
        "for the profilers TraceML and XProf, waiting for data is critical if it takes 20 % of "
        "the step time or more; in jobs with GPUs, Teho uses this limit for all lost time",
    ),
    "lost_min_s": chosen(2.0, "s", "every program needs about 2 s to start and to end"),
    "work_min_s": Threshold(
        60.0,
        "s",
        "as in the rule job_too_short: shares of the time are not reliable in a run of one "
        "minute or less",
    ),
    "small_messages_mb_per_s": chosen(
        20.0,
        "MB/s",
        "six programs of the blind rounds that pass large objects between processes read or wrote "
        "290 MB/s or more while they did this; a program with small messages reached 5 MB/s",
    ),
    "switches_per_s_min": chosen(
        5000.0,
        "1/s",
        "a message wakes up the process that gets it; 90 % of 351 programs of the blind rounds had "
        "fewer than 4100 context switches per second on two cores",
    ),
    "batches_min": Threshold(
        10.0,
        "batches",
        "nvbench, a benchmark tool, requires at least 10 samples before it gives a result; Teho "
        "requires the same number of batches",
    ),
}
_ROOFLINE = {
    "near_percent": Threshold(
        60.0,
        "%",
        "Nsight Compute (rule SOLBottleneck): if a program stays below 60 % of the peak speed of "
        "arithmetic and below 60 % of the peak bandwidth, the speed is limited by latency "
        "(waiting for single operations)",
    ),
}
_OUTLIERS = {
    "deviations": Threshold(
        3.5,
        "deviations",
        "Iglewicz and Hoaglin (1993) call a value an outlier if its modified z-score is above "
        "3.5; this score is computed from the median and the median absolute deviation",
    ),
    "points_min": chosen(
        10.0, "%", "differences of less than 10 percentage points do not matter to most readers"
    ),
    "relative_min_percent": chosen(
        20.0,
        "%",
        "even the figures of equal GPUs differ by several per cent",
    ),
    "cores_min": chosen(1.0, "cores", "the operating system may use up to one core"),
    "memory_min_gib": chosen(1.0, "GiB", "libraries and logs need less than 1 GiB of memory"),
    "time_min_s": chosen(
        10.0, "s", "the start and end times of equal tasks differ by some seconds"
    ),
}
_GOOD_USE = {
    "sm_active_percent": Threshold(
        80.0, "%", "as in the rule gpu_sm_low: above this limit, the GPU has enough work"
    ),
    "gpu_busy_percent": chosen(80.0, "%", "the same value as sm_active_percent"),
    "power_percent": chosen(
        50.0,
        "%",
        "if the kernels on a GPU wait or are tiny, the GPU draws less than half of its power limit",
    ),
}
_SMALL_FILES = {
    "files_min": chosen(
        1000.0, "files", "a program needs only a few seconds to open fewer than 1000 files"
    ),
    "size_kib": Threshold(
        1024.0,
        "KiB",
        "the file system Lustre usually divides files into stripes of 1 MiB: a smaller file "
        "is on only one server",
    ),
}
_DIGEST = {
    "elapsed_min_s": chosen(
        600.0,
        "s",
        "in shorter jobs, the start and the end of the program take a large part of the time",
    ),
    "cores_min": chosen(
        3.0,
        "cores",
        "some sites count two CPUs for each core, so a job with two CPUs may have only one core",
    ),
    "interactive_min_s": chosen(
        3600.0, "s", "in a shorter session, a pause for reading or thinking is usual"
    ),
    "interactive_percent": chosen(
        5.0, "%", "a shell or a notebook that waits for its user needs almost no CPU time"
    ),
    "memory_of_core_gib": chosen(
        4.0, "GiB", "a node has about 4 GiB of memory for each core: this memory comes with a core"
    ),
    "fails_min": chosen(
        5.0,
        "jobs",
        "if fewer jobs of the same name fail at their start, the user may still be trying out the "
        "batch script",
    ),
    "fails_within_s": chosen(60.0, "s", "in the first minute, programs load libraries and data"),
    "gpu_large_gib": chosen(
        38.0,
        "GiB",
        "NVIDIA's data-centre GPUs with 40 GB or more can be divided into slices (MIG)",
    ),
    "gpu_memory_percent": chosen(
        25.0, "%", "a slice (MIG) with a quarter of the memory of a GPU is usual"
    ),
    "gpus_blocked_min": chosen(
        1.0,
        "GPUs",
        "a job with GPUs needs at least one core for each GPU: if a job without GPUs leaves fewer "
        "cores on a node than the node has GPUs, no job can use the other GPUs",
    ),
    "mail_gpu_hours": chosen(
        24.0, "GPU-hours", "a mail about less than a day of one GPU costs more time than it saves"
    ),
    "mail_core_hours": chosen(
        1000.0, "core-hours", "a mail about less than a day of one node costs more than it saves"
    ),
}
_PRESENT = {
    "gpu_idle_min_s": chosen(
        180.0,
        "s",
        "most evaluations and checkpoints take less time; `teho top` counts only the time in which "
        "most of the other GPUs worked",
    ),
    "input_wait_percent": MOST_OF_THE_TIME,
}
SHARED = {
    DIGEST: _DIGEST,
    EVERY_RULE: _EVERY_RULE,
    ROOFLINE: _ROOFLINE,
    OUTLIERS: _OUTLIERS,
    PRESENT: _PRESENT,
    GOOD_USE: _GOOD_USE,
    SMALL_FILES: _SMALL_FILES,
}
