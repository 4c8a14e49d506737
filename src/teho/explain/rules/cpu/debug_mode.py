"""A debug mode is on, which makes all computing slower."""

from __future__ import annotations

from collections.abc import Iterator

from teho.explain.activities import ANOMALY_MODE, activity_times
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    Located,
    ProgramContext,
    Severity,
    Threshold,
)
from teho.model.program import Doing, MainProcess
from teho.patterns import lazy_pattern

RANK = 215
SEVERITY = "warning"
CERTAINTY = Certainty.SURE
THRESHOLDS: dict[str, Threshold] = {}

_ANOMALY = (
    "PyTorch's anomaly detection is on",
    "remove `torch.autograd.set_detect_anomaly(True)`",
)
_OF_TRAINER = (
    "remove `detect_anomaly=True` from the arguments of `Trainer`, and "
    "`torch.autograd.set_detect_anomaly(True)` from the program"
)
_LIGHTNING = lazy_pattern(r"/(lightning|pytorch_lightning)/pytorch/|/pytorch_lightning/")
_MODES = {
    ("torch", "anomaly"): _ANOMALY,
    ("jax", "disable_jit"): (
        "JAX does not compile, because `jax_disable_jit` is on",
        "remove the setting `jax_disable_jit` (or the variable `JAX_DISABLE_JIT=1`)",
    ),
    ("jax", "debug_nans"): (
        "JAX checks each result for NaN, because `jax_debug_nans` is on",
        "remove the setting `jax_debug_nans` (or the variable `JAX_DEBUG_NANS=True`)",
    ),
}
_TRACEMALLOC = "`tracemalloc` is on, so Python stores where each object is made"
_TRACED = (0.6, 0.95)
"""Part of the time of Python code that tracing takes. In five small programs (numbers, objects, a
heap, JSON, strings; Python 3.11), Python code took 2.7 to 70 times as long with `tracemalloc`."""
_VARIABLES = {
    "CUDA_LAUNCH_BLOCKING": "the program waits for the end of each GPU kernel",
    "NUMBA_DISABLE_JIT": "Numba does not compile",
    "PYTHONDEVMODE": "Python's development mode is on",
    "PYTHONMALLOC": "Python checks its memory",
    "PYTHONTRACEMALLOC": "Python stores where each object is made",
    "TORCHDYNAMO_DISABLE": "`torch.compile` does not compile",
}
_OFF = ("", "0", "false", "False", "default", "malloc", "pymalloc")


def judge(context: ProgramContext) -> Findings:
    """Check the settings and environment variables that the probe recorded."""
    for main in context.mains[:1]:
        if "tracemalloc" in main.process.libraries.get("python", {}):
            yield _traced(context, main)
        for what, to_do in _modes(main):
            is_of_trainer = what == _ANOMALY[0] and _has_trainer(main)
            action = _OF_TRAINER if is_of_trainer else to_do
            stored = _anomaly_percent(main) if what == _ANOMALY[0] else 0.0
            yield context.finding(
                Severity.WARNING,
                f"{what}: all computing takes longer.",
                evidence=(
                    Evidence("setting", what),
                    *(
                        [Evidence("time spent on storing call stacks", stored, "%")]
                        if stored
                        else []
                    ),
                ),
                action=f"If you no longer search for an error, {action}.",
                regain_percent=(0.8 * stored, stored) if stored else None,
            )


def _traced(context: ProgramContext, main: MainProcess) -> Located:
    share = main.percent(Doing.PYTHON)
    least, most = _TRACED
    return context.finding(
        Severity.WARNING,
        f"{_TRACEMALLOC}: Python code takes several times as long.",
        evidence=(Evidence("time in Python code", share, "%"),),
        action=(
            "If you do not examine the memory now, remove `tracemalloc.start()`, and the variable "
            "`PYTHONTRACEMALLOC` if it is set. `resource.getrusage` gives the largest memory of a "
            "process without this cost."
        ),
        regain_percent=(least * share, most * share),
    )


def _anomaly_percent(main: MainProcess) -> float:
    """Return the share of the time in % in which anomaly detection stored stacks.

    The whole cost is larger: checking each result for NaN has no function of its own.
    """
    wall_s = sum(one.wall_s for one in activity_times(main) if one.activity.name == ANOMALY_MODE)
    return 100 * wall_s / main.process.wall_s


def _has_trainer(main: MainProcess) -> bool:
    """Return whether the trainer of Lightning calls the program."""
    stacks = main.process.stacks
    return any(_LIGHTNING.search(frame.file) for seen in stacks for frame in seen.frames)


def _modes(main: MainProcess) -> Iterator[tuple[str, str]]:
    for (library, fact), words in _MODES.items():
        if main.process.libraries.get(library, {}).get(fact):
            yield words
    for name, effect in _VARIABLES.items():
        value = main.process.variables.get(name)
        if name == "PYTHONTRACEMALLOC" and "python" in main.process.libraries:
            continue
        if value is not None and value not in _OFF:
            yield f"`{name}={value}` is set, so {effect}", f"run `unset {name}` before the program"
