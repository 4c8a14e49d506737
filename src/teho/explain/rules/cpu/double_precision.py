"""The model or JAX computes with 64-bit numbers, or CuPy copies 64-bit numbers to the GPU."""

from __future__ import annotations

from teho.explain.options import option_of_rule
from teho.explain.program_context import in_lines
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.model.program import Doing, MainProcess

RANK = 310
SEVERITY = "remark"
THRESHOLDS = {
    "double_percent": chosen(
        50.0, "%", "above this limit, most of the model's numbers have 64 bits"
    )
}

_COMPUTING = (Doing.NATIVE, Doing.THREADS, Doing.DEVICE, Doing.COPYING)


def judge(context: ProgramContext) -> Findings:
    """Check the types of what PyTorch trains, JAX computes and CuPy copies."""
    for main in context.mains:
        case = _doubles(main, context.limit("double_percent"))
        if case is None:
            continue
        sentence, evidence, action = case
        action = option_of_rule(main, "double_precision") or action
        computing = main.percent(*_COMPUTING)
        yield context.finding(
            # Some work needs 64 bits; only its author knows.
            Severity.REMARK,
            f"{sentence}. 64-bit numbers need twice the memory and twice the time of 32-bit "
            "numbers. On most GPUs, 64-bit numbers need far more than twice the time.",
            evidence=(
                evidence,
                Evidence("time spent on computing", computing, "%"),
                *in_lines(main.lines(*_COMPUTING)),
            ),
            action=f"If 32 bits are enough, {action}.",
            regain_percent=(0.0, computing / 2),
        )
        return


def _doubles(main: MainProcess, limit_percent: float) -> tuple[str, Evidence, str] | None:
    """Return what has 64 bits: begin of the sentence, evidence, and advice; else None."""
    share = _doubles_percent(main.library.get("parameter_dtypes"))
    if share is not None and share >= limit_percent:
        return (
            "The model's parameters have 64 bits",
            Evidence("share of the parameters that have 64 bits", share, "%"),
            (
                "convert the model with `model.float()`, and the batches with "
                "`torch.from_numpy(x).float()`"
            ),
        )
    if main.process.libraries.get("jax", {}).get("x64"):
        return (
            "JAX computes with 64 bits",
            Evidence("jax_enable_x64", "on"),
            "do not set `jax_enable_x64`, or create the arrays with `dtype=jnp.float32`",
        )
    copies = main.process.libraries.get("cupy", {}).get("to_device", {})
    share = _doubles_percent(copies.get("dtypes"))
    if share is not None and share >= limit_percent:
        return (
            "The data that CuPy copies to the GPU have 64 bits",
            Evidence("share of the copied data that has 64 bits", share, "%"),
            "copy the data as 32-bit numbers: `cupy.asarray(x, dtype=cupy.float32)`",
        )
    return None


def _doubles_percent(sizes: object) -> float | None:
    """Return the share of 64-bit numbers in these bytes by type; None without any bytes."""
    if not isinstance(sizes, dict) or not sum(sizes.values()):
        return None
    doubles = sum(size for name, size in sizes.items() if name in {"float64", "complex128"})
    return float(100 * doubles / sum(sizes.values()))
