"""The job has a GPU, but PyTorch, JAX or TensorFlow cannot use it, or does not use it."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.kinds import GPU_PROGRAM, STARVED
from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, Severity, Threshold
from teho.explain.wording import blind_tensorflow, blind_torch
from teho.model.program import MainProcess

RANK = 40
SEVERITY = "critical"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "busy_max_percent": Threshold(
        1.0,
        "%",
        "as in the rule gpu_never_used: if the highest use of a GPU is below this limit, the GPU "
        "was not used",
    )
}
MUTES = ("gpu_never_used", "gpu_held_idle", *STARVED, *GPU_PROGRAM)
MUTES_BECAUSE = "this finding says why the GPU has no work"


def judge(context: ProgramContext) -> Findings:
    """Check what frameworks were built for, and where they compute."""
    case = _torch(context.mains) or _jax(context.mains) or _tensorflow(context.mains)
    if not context.gpus or case is None:
        return
    # Another library may use the GPU, or the program moves the model there part by part.
    uses = [context.use(gpu) for gpu in context.gpus]
    limit = context.limit("busy_max_percent")
    if any(use is not None and not use.is_none(limit) for use in uses):
        context.forget_lacks()
    elif None not in uses:
        sentence, evidence, action = case
        yield context.finding(
            Severity.CRITICAL,
            f"The job has a GPU, but {sentence}.",
            evidence=(*evidence, Evidence("number of GPUs", float(len(context.gpus)))),
            action=action,
            subjects=context.gpus,
        )


Case = tuple[str, tuple[Evidence, ...], str]
"""End of the sentence, evidence, and advice."""


def _torch(mains: Sequence[MainProcess]) -> Case | None:
    mains = [main for main in mains if main.library.get("version")]
    blind = [main for main in mains if not (main.library.get("cuda") or main.library.get("hip"))]
    on_cpu = [main for main in mains if main.library.get("devices") == ["cpu"]]
    if not mains or len(mains) not in (len(blind), len(on_cpu)):
        return None
    library = mains[0].library
    evidence = (
        Evidence("version of PyTorch", str(library["version"])),
        Evidence("CUDA version of this PyTorch", str(library.get("cuda") or "none")),
    )
    if blind:
        return (
            blind_torch(library),
            evidence,
            (
                "Install a build of PyTorch for GPUs, or load the cluster's module for PyTorch. "
                "Then check in a job that `python -c 'import torch; "
                "print(torch.cuda.is_available())'` prints True."
            ),
        )
    return (
        "the model's parameters are in the node's memory, not in the GPU's memory",
        evidence,
        (
            'Move the model to the GPU with `model.to("cuda")`, and each batch with '
            '`x.to("cuda")`. Or do not request a GPU.'
        ),
    )


def _jax(mains: Sequence[MainProcess]) -> Case | None:
    facts = [main.process.libraries.get("jax", {}) for main in mains]
    if not facts or any(one.get("platform") != "cpu" for one in facts):
        return None
    version = str(facts[0].get("version", ""))
    return (
        f"the program's JAX {version} computes on CPUs",
        (Evidence("version of JAX", version),),
        (
            "Install JAX for GPUs with `pip install 'jax[cuda12]'`, or load the cluster's module "
            "for JAX. The variable `JAX_PLATFORMS` must not be `cpu`. Then check in a job that "
            "`python -c 'import jax; print(jax.devices())'` prints a GPU."
        ),
    )


def _tensorflow(mains: Sequence[MainProcess]) -> Case | None:
    facts = [main.process.libraries.get("tensorflow", {}) for main in mains]
    # If another framework is loaded, it may be the one that computes.
    others = {"torch", "jax", "cupy"}
    if not facts or any(others & set(main.process.libraries) for main in mains):
        return None
    sentences = [blind_tensorflow(one) for one in facts]
    if not all(sentences):
        return None
    return (
        sentences[0],
        (Evidence("version of TensorFlow", str(facts[0].get("version", ""))),),
        (
            "Install TensorFlow for GPUs with `pip install 'tensorflow[and-cuda]'`, or load the "
            "cluster's module for TensorFlow. Then check in a job that `python -c 'import "
            'tensorflow as tf; print(tf.config.list_physical_devices("GPU"))\'` prints a GPU.'
        ),
    )
