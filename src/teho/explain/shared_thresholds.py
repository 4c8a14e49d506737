"""Thresholds that do not belong to a single rule."""

from __future__ import annotations

from teho.model.finding import Threshold

__all__ = [
    "EVERY_RULE",
    "MOST_OF_THE_TIME",
    "OUTLIERS",
    "ROOFLINE",
    "SHARED",
    "SMALL_FILES",
    "chosen",
]


def chosen(value: float, unit: str, reason: str) -> Threshold:
    """Return a threshold without an outside source: Teho's own choice, and the reason."""
    return Threshold(value, unit, f"Teho's own choice: {reason}")


MOST_OF_THE_TIME = Threshold(
    50.0, "%", "same as SageMaker's profiler rules: more than 50 % of the time"
)

EVERY_RULE = "every_rule"
"""Section of thresholds that all rules share."""
OUTLIERS = "outliers"
"""Section for sorting tables of many devices; rules do not read it."""
ROOFLINE = "roofline"
"""Section of the roofline plot; rules do not read it."""
SMALL_FILES = "small_files"
"""Section for data on network file systems: `teho doctor --data` and `teho stage` read it."""

_EVERY_RULE = {
    "covered_percent_min": chosen(50.0, "%", "a signal must be recorded for half of the run"),
    "at_work_percent": Threshold(
        50.0,
        "%",
        "threshold of gpu_low_use: a GPU that is less busy in a time bin waits for something",
    ),
    "at_work_time_percent": MOST_OF_THE_TIME,
    "lost_percent": Threshold(
        10.0, "%", "TraceML: a warning if waiting for data takes 10 % of a step or more"
    ),
    "lost_critical_percent": chosen(50.0, "%", "half of the run time"),
    "lost_beside_gpus_percent": Threshold(
        20.0,
        "%",
        "TraceML and XProf: waiting for data is critical if it takes 20 % of a step or more",
    ),
    "lost_min_s": chosen(2.0, "s", "the start and end of any program take this long"),
    "work_min_s": Threshold(
        60.0, "s", "threshold of job_too_short: shares of a minute or less are not reliable"
    ),
    "batches_min": Threshold(10.0, "batches", "nvbench: at least 10 samples before a verdict"),
}
_ROOFLINE = {
    "near_percent": Threshold(
        60.0,
        "%",
        "Nsight Compute, rule SOLBottleneck: below 60 % of both peaks, latency limits the speed",
    ),
}
_OUTLIERS = {
    "deviations": Threshold(
        3.5,
        "deviations",
        "Iglewicz and Hoaglin (1993): modified z-scores above 3.5, by median and MAD",
    ),
    "points_min": chosen(10.0, "%", "smaller differences do not matter to a reader"),
    "relative_min_percent": chosen(20.0, "%", "GPUs of one model differ by several per cent"),
    "cores_min": chosen(1.0, "cores", "the system itself may use up to one core"),
    "memory_min_gib": chosen(1.0, "GiB", "libraries and logs need less memory"),
    "time_min_s": chosen(10.0, "s", "tasks start and end some seconds apart"),
}
_SMALL_FILES = {
    "files_min": chosen(1000.0, "files", "fewer files are opened within seconds"),
    "size_kib": Threshold(
        1024.0, "KiB", "Lustre's usual stripe, 1 MiB: a smaller file is on only one server"
    ),
}
SHARED = {
    EVERY_RULE: _EVERY_RULE,
    ROOFLINE: _ROOFLINE,
    OUTLIERS: _OUTLIERS,
    SMALL_FILES: _SMALL_FILES,
}
