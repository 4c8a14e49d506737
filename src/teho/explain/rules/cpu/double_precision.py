"""The model or JAX computes with 64-bit numbers, or CuPy copies 64-bit numbers to the GPU."""

from __future__ import annotations

from teho.explain.options import found_of_rule, option_of_rule
from teho.explain.peaks import peaks_of
from teho.explain.program_context import in_lines, is_on_gpu
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.model.program import Doing, MainProcess
from teho.patterns import lazy_pattern

RANK = 310
SEVERITY = "remark"
THRESHOLDS = {
    "double_percent": chosen(
        50.0, "%", "above this limit, most of the model's numbers have 64 bits"
    ),
    "parameters_min": chosen(
        10_000,
        "parameters",
        "on a GPU, a model with fewer parameters is not a neural network: most of the work is on "
        "other numbers, and Teho does not know the type of these numbers",
    ),
    "rate_percent": chosen(
        25.0,
        "%",
        "the same value as the threshold gpu_slow_fp64.rate_percent: GPUs made for 64-bit numbers "
        "compute with them at about half of their 32-bit speed, or faster",
    ),
}

_COMPUTING = (Doing.NATIVE, Doing.THREADS, Doing.DEVICE, Doing.COPYING)
_FACTORISES = lazy_pattern(
    r"\b(linalg\.(cholesky|qr|eig|svd|inv|pinv|solve|lu|ldl|lstsq|slogdet|det|matrix_exp|expm"
    r"|geqrf|householder)\w*|cholesky_\w+|cho_(factor|solve)|lu_(factor|solve)"
    r"|triangular_solve|solve_triangular)\("
)
"""Calls that factorise matrices, or solve with their factors."""
_SMALL = "small_matrices_by_jax"
"""Name in costly_options.toml."""
_FACTORISING = 0.01
"""Part of the computing time in such calls from which 64 bits are assumed to be needed. On a GPU, a
call takes little time: it only starts the work."""


def judge(context: ProgramContext) -> Findings:
    """Check the types of what PyTorch trains, JAX computes and CuPy copies."""
    for main in context.mains:
        case = _doubles(main, context.limit("double_percent"))
        if case is None or _factorises(main) or _is_small(context, main) or _is_filter(main):
            continue
        sentence, evidence, action = case
        action = option_of_rule(main, "double_precision") or action
        computing = main.percent(*_COMPUTING)
        is_fast = _is_made_for_doubles(context, main)
        most_gpus = " On most GPUs, 64-bit numbers need far more than twice the time."
        yield context.finding(
            # Some work needs 64 bits; only its author knows.
            Severity.REMARK,
            f"{sentence}. 64-bit numbers need twice the memory and twice the time of 32-bit "
            f"numbers.{'' if is_fast else most_gpus}",
            evidence=(
                evidence,
                Evidence("time spent on computing", computing, "%"),
                *in_lines(main.lines(*_COMPUTING)),
            ),
            action=f"If 32 bits are enough, {action}.",
            regain_percent=None if is_fast else (0.0, computing / 2),
        )
        return


def _factorises(main: MainProcess) -> bool:
    """Return whether a program factorises matrices: with 32 bits, this often fails."""
    times = [
        (seen.wall_s, any(_FACTORISES.search(frame.text) for frame in seen.frames))
        for seen in main.process.stacks
    ]
    return sum(s for s, is_one in times if is_one) >= _FACTORISING * main.seconds(*_COMPUTING) > 0


def _is_filter(main: MainProcess) -> bool:
    """Return whether JAX multiplies small matrices in a loop: 32 bits would not be faster."""
    found = found_of_rule(main, "double_precision")
    return any(one.option.name == _SMALL for one in found)


def _is_small(context: ProgramContext, main: MainProcess) -> bool:
    """Return whether a GPU trains so few parameters that they are not what it computes with."""
    sizes = main.library.get("parameter_dtypes")
    if not is_on_gpu(main) or not isinstance(sizes, dict) or not sizes:
        return False
    return bool(sum(sizes.values()) < context.limit("parameters_min"))


def _is_made_for_doubles(context: ProgramContext, main: MainProcess) -> bool:
    """Return whether the GPUs of a process are known to be fast with 64-bit numbers."""
    peaks = [peaks_of(gpu.gpu.device) for gpu in context.gpus_beside(main)]
    return bool(peaks) and all(
        one is not None
        and one.fp64_tflops is not None
        and one.fp32_tflops is not None
        and 100 * one.fp64_tflops >= context.limit("rate_percent") * one.fp32_tflops
        for one in peaks
    )


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
