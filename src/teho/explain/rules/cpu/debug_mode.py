"""A debug mode is on, which makes all computing slower."""

from __future__ import annotations

from collections.abc import Iterator

from teho.explain.activities import ANOMALY_MODE, activity_times
from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, Severity, Threshold
from teho.model.program import MainProcess

RANK = 215
SEVERITY = "warning"
CERTAINTY = Certainty.SURE
THRESHOLDS: dict[str, Threshold] = {}

_ANOMALY = (
    "PyTorch's anomaly detection is on",
    "remove `torch.autograd.set_detect_anomaly(True)`",
)
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
_VARIABLES = {
    "CUDA_LAUNCH_BLOCKING": "the program waits for the end of each GPU kernel",
    "NUMBA_DISABLE_JIT": "Numba does not compile",
    "PYTHONDEVMODE": "Python's development mode is on",
    "PYTHONMALLOC": "Python checks its memory",
    "PYTHONTRACEMALLOC": "Python traces its memory",
    "TORCHDYNAMO_DISABLE": "`torch.compile` does not compile",
}
_OFF = ("", "0", "false", "False", "default", "malloc", "pymalloc")


def judge(context: ProgramContext) -> Findings:
    """Check the settings and environment variables that the probe recorded."""
    for main in context.mains[:1]:
        for what, action in _modes(main):
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


def _anomaly_percent(main: MainProcess) -> float:
    """Return the share of the time in % in which anomaly detection stored stacks.

    The whole cost is larger: checking each result for NaN has no function of its own.
    """
    wall_s = sum(one.wall_s for one in activity_times(main) if one.activity.name == ANOMALY_MODE)
    return 100 * wall_s / main.process.wall_s


def _modes(main: MainProcess) -> Iterator[tuple[str, str]]:
    for (library, fact), words in _MODES.items():
        if main.process.libraries.get(library, {}).get(fact):
            yield words
    for name, effect in _VARIABLES.items():
        value = main.process.variables.get(name)
        if value is not None and value not in _OFF:
            yield f"`{name}={value}` is set, so {effect}", f"run `unset {name}` before the program"
