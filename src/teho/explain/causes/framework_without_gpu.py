"""The job holds a GPU, and PyTorch, JAX or TensorFlow cannot use it, or does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from teho.explain.causes._watch import Watch
from teho.explain.wording import blind_tensorflow, blind_torch
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.program import MainProcess
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "framework_without_gpu"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at what frameworks were built for, and where they compute."""
    watch = Watch(KIND, run, summary, thresholds)
    told = _of_torch(watch.mains) or _of_jax(watch.mains) or _of_tensorflow(watch.mains)
    if not watch.gpus or told is None:
        return []
    # Another library may use it, or the model is moved there part by part.
    uses = [watch.use(of) for of in watch.gpus]
    limit = watch.limit("busy_max_percent")
    if not all(use is not None and use.was_none(limit) for use in uses):
        return [] if any(use and not use.was_none(limit) for use in uses) else watch.outcome([])
    sentence, evidence, action = told
    return [
        watch.finding(
            Severity.CRITICAL,
            f"The job holds a GPU, and {sentence}.",
            evidence=(*evidence, Evidence("GPUs", float(len(watch.gpus)))),
            judged_by=["busy_max_percent"],
            action=action,
            subjects=watch.gpus,
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
        else "the model's parameters lie in the host's memory",
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
