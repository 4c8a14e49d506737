"""Thresholds that belong to no single rule."""

from __future__ import annotations

from teho.model.finding import Threshold

__all__ = ["EVERY_RULE", "OUTLIERS", "ROOFLINE", "SHARED"]

EVERY_RULE = "every_rule"
"""Section of thresholds that every rule sees beside its own."""
OUTLIERS = "outliers"
"""Section by which tables of many devices are sorted; no rule reads it."""
ROOFLINE = "roofline"
"""Section of the roofline plot; no rule reads it."""

_EVERY_RULE = {
    "covered_percent_min": Threshold(
        50.0, "%", "Teho's own choice: what was seen for less than half of the run is not judged"
    ),
    "at_work_percent": Threshold(
        50.0, "%", "as gpu_low_use: a GPU that is busy for less of a time bin waits for something"
    ),
    "at_work_time_percent": Threshold(
        50.0, "%", "as SageMaker's profiler rules: more than 50 % of the time"
    ),
    "lost_percent": Threshold(
        10.0, "%", "TraceML: waiting for data is worth a warning from 10 % of a step on"
    ),
    "lost_critical_percent": Threshold(
        50.0, "%", "Teho's own choice: half of the time that was paid for"
    ),
    "lost_beside_gpus_percent": Threshold(
        20.0, "%", "TraceML and XProf: waiting for data is critical from 20 % of a step on"
    ),
    "lost_min_s": Threshold(
        2.0, "s", "Teho's own choice: less than this is how any program begins and ends"
    ),
    "work_min_s": Threshold(
        60.0, "s", "as job_too_short: of a minute's work or less, shares are chance"
    ),
    "batches_min": Threshold(10.0, "batches", "nvbench: at least 10 samples before a verdict"),
}
_ROOFLINE = {
    "near_percent": Threshold(
        60.0,
        "%",
        "Nsight Compute, rule SOLBottleneck: below 60 % of both peaks it is mostly latency",
    ),
}
_OUTLIERS = {
    "deviations": Threshold(
        3.5,
        "deviations",
        "Iglewicz and Hoaglin (1993): modified z-scores above 3.5, from median and MAD",
    ),
    "points_min": Threshold(
        10.0,
        "%",
        "Teho's own choice: shares that differ by less than 10 points are alike to a reader",
    ),
    "relative_min_percent": Threshold(
        20.0,
        "%",
        "Teho's own choice: chips of one model differ by several per cent at the same work",
    ),
    "cores_min": Threshold(
        1.0, "cores", "Teho's own choice: less than one core is what housekeeping takes"
    ),
    "memory_min_gib": Threshold(
        1.0, "GiB", "Teho's own choice: less is what libraries and logs take"
    ),
    "time_min_s": Threshold(10.0, "s", "Teho's own choice: tasks start and end some seconds apart"),
}
SHARED = {EVERY_RULE: _EVERY_RULE, ROOFLINE: _ROOFLINE, OUTLIERS: _OUTLIERS}
