"""The program computes with 64 bits where 32 would probably do."""

from __future__ import annotations

from teho.explain.context import in_lines
from teho.explain.program_context import ProgramContext
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.program import Doing, MainProcess

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "double_precision"
RANK = 310
SAYS = "the model, or all of JAX, computes with 64 bits, or CuPy copies such data to the GPU"
SEVERITY = "remark"
THRESHOLDS = {
    "double_percent": Threshold(50.0, "%", "Teho's own choice: most of the model"),
}
_COMPUTING = (Doing.NATIVE, Doing.THREADS, Doing.DEVICE, Doing.COPYING)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at what PyTorch trains, how JAX was told to compute, and what CuPy copies."""
    for main in context.mains:
        limit_percent = context.limit("double_percent")
        told = _parameters(main, limit_percent) or _mode(main) or _copied(main, limit_percent)
        if told is None:
            continue
        sentence, evidence, action = told
        computing = main.percent(*_COMPUTING)
        return [
            context.finding(
                # Some work needs it: nobody but its author knows.
                Severity.REMARK,
                f"{sentence}: twice the memory and half the speed of 32 bits, and far less on most "
                "GPUs.",
                evidence=(
                    evidence,
                    Evidence("computing", computing, "%"),
                    *in_lines(main.lines(*_COMPUTING)),
                ),
                judged_by=["double_percent"],
                action=f"If 32 bits are enough, {action}.",
                regain_percent=(0.0, computing / 2),
            )
        ]
    return []


Told = tuple[str, Evidence, str]


def _parameters(main: MainProcess, limit_percent: float) -> Told | None:
    share = _doubles_percent(main.library.get("parameter_dtypes"))
    if share is None or share < limit_percent:
        return None
    return (
        "The model's parameters have 64 bits",
        Evidence("64-bit parameters", share, "%"),
        "make it `model.float()`, and its batches `torch.from_numpy(x).float()`",
    )


def _copied(main: MainProcess, limit_percent: float) -> Told | None:
    copies = main.process.libraries.get("cupy", {}).get("to_device", {})
    share = _doubles_percent(copies.get("dtypes"))
    if share is None or share < limit_percent:
        return None
    return (
        "What CuPy copies to the GPU has 64 bits",
        Evidence("64-bit data copied to the GPU", share, "%"),
        "copy it as `cupy.asarray(x, dtype=cupy.float32)`",
    )


def _mode(main: MainProcess) -> Told | None:
    if not main.process.libraries.get("jax", {}).get("x64"):
        return None
    return (
        "JAX computes with 64 bits",
        Evidence("jax_enable_x64", "on"),
        "leave `jax_enable_x64` off, or make single arrays `dtype=jnp.float32`",
    )


def _doubles_percent(sizes: object) -> float | None:
    """Return which share of these bytes, by their type, are 64-bit numbers; None if of none."""
    if not isinstance(sizes, dict) or not sum(sizes.values()):
        return None
    doubles = sum(size for name, size in sizes.items() if name in {"float64", "complex128"})
    return float(100 * doubles / sum(sizes.values()))
