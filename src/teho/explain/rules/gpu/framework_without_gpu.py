"""The job holds a GPU, and PyTorch, JAX or TensorFlow cannot use it, or does not."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.program_context import ProgramContext
from teho.explain.rule import STARVED, Mutes
from teho.explain.wording import blind_tensorflow, blind_torch
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.program import MainProcess

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "framework_without_gpu"
RANK = 40
SAYS = (
    "the job has a GPU, but PyTorch or JAX computes on CPUs, or the model is on the CPU, or "
    "TensorFlow is built for CPUs"
)
SEVERITY = "critical"
THRESHOLDS = {
    "busy_max_percent": Threshold(1.0, "%", "as gpu_never_used"),
}
MUTES = Mutes(
    (
        "gpu_never_used",
        "gpu_held_idle",
        *STARVED,
        "copies_from_pageable_memory",
        "data_fits_gpu",
        "waits_for_device",
        "problem_too_small",
        "batch_small",
    ),
    because="it says why the GPU has nothing to do",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at what frameworks were built for, and where they compute."""
    told = _of_torch(context.mains) or _of_jax(context.mains) or _of_tensorflow(context.mains)
    if not context.gpus or told is None:
        return []
    # Another library may use it, or the model is moved there part by part.
    uses = [context.use(of) for of in context.gpus]
    limit = context.limit("busy_max_percent")
    if not all(use is not None and use.was_none(limit) for use in uses):
        return [] if any(use and not use.was_none(limit) for use in uses) else context.outcome([])
    sentence, evidence, action = told
    return [
        context.finding(
            Severity.CRITICAL,
            f"The job holds a GPU, and {sentence}.",
            evidence=(*evidence, Evidence("GPUs", float(len(context.gpus)))),
            judged_by=["busy_max_percent"],
            action=action,
            subjects=context.gpus,
        )
    ]


Told = tuple[str, tuple[Evidence, ...], str]


def _of_torch(mains: Sequence[MainProcess]) -> Told | None:
    mains = [main for main in mains if main.library.get("version")]
    blind = [main for main in mains if not (main.library.get("cuda") or main.library.get("hip"))]
    aside = [main for main in mains if main.library.get("devices") == ["cpu"]]
    if not mains or len(mains) not in (len(blind), len(aside)):
        return None
    version = str(mains[0].library["version"])
    built = Evidence("built for CUDA", str(mains[0].library.get("cuda") or "no"))
    return (
        blind_torch(mains[0].library)
        if blind
        else "the model's parameters are in the host's memory",
        (Evidence("PyTorch", version), built),
        "Install a build for GPUs, or load the site's module, and see that "
        "`python -c 'import torch; print(torch.cuda.is_available())'` says True in a job."
        if blind
        else 'Move model and batches there, `model.to("cuda")`, or ask for no GPU.',
    )


def _of_jax(mains: Sequence[MainProcess]) -> Told | None:
    facts = [main.process.libraries.get("jax", {}) for main in mains]
    if not facts or any(one.get("platform") != "cpu" for one in facts):
        return None
    version = str(facts[0].get("version", ""))
    return (
        f"its JAX {version} computes on CPUs",
        (Evidence("JAX", version),),
        (
            "Install it for GPUs, `pip install 'jax[cuda12]'`, or load the site's module; see that "
            "`JAX_PLATFORMS` does not say `cpu`, and that "
            "`python -c 'import jax; print(jax.devices())'` names a GPU in a job."
        ),
    )


def _of_tensorflow(mains: Sequence[MainProcess]) -> Told | None:
    facts = [main.process.libraries.get("tensorflow", {}) for main in mains]
    # Where another framework is there, that one may be what computes.
    others = {"torch", "jax", "cupy"}
    if not facts or any(others & set(main.process.libraries) for main in mains):
        return None
    told = [blind_tensorflow(one) for one in facts]
    if not all(told):
        return None
    version = str(facts[0].get("version", ""))
    return (
        told[0],
        (Evidence("TensorFlow", version),),
        (
            "Install it for GPUs, `pip install 'tensorflow[and-cuda]'`, or load the site's module, "
            "and see that `python -c 'import tensorflow as tf; "
            'print(tf.config.list_physical_devices("GPU"))\'` names one in a job.'
        ),
    )
