"""The job holds a GPU, and PyTorch cannot use it, or does not."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "framework_without_gpu"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at what PyTorch was built for, and at where the model's parameters lie."""
    watch = Watch(KIND, run, summary, thresholds)
    if not watch.gpus:
        return []
    mains = [main for main in watch.mains if main.library.get("version")]
    blind = [main for main in mains if not (main.library.get("cuda") or main.library.get("hip"))]
    aside = [main for main in mains if main.library.get("devices") == ["cpu"]]
    if not mains or len(mains) not in (len(blind), len(aside)):
        return []
    # Another library may use it, or the model is moved there part by part.
    uses = [watch.use(of) for of in watch.gpus]
    limit = watch.limit("busy_max_percent")
    if not all(use is not None and use.was_none(limit) for use in uses):
        return [] if any(use and not use.was_none(limit) for use in uses) else watch.outcome([])
    version = str(mains[0].library["version"])
    made_for = "Intel's GPUs" if "+xpu" in version else "CPUs"
    return [
        watch.finding(
            Severity.CRITICAL,
            f"The job holds a GPU, and its PyTorch {version} is built for {made_for} alone."
            if blind
            else "The job holds a GPU, and the model's parameters lie in the host's memory.",
            evidence=(
                Evidence("PyTorch", version),
                Evidence("built for CUDA", str(mains[0].library.get("cuda") or "no")),
                Evidence("GPUs", float(len(watch.gpus))),
            ),
            judged_by=["busy_max_percent"],
            action=(
                "Install a build for GPUs, or load the site's module, and see that "
                "`python -c 'import torch; print(torch.cuda.is_available())'` says True in a job."
                if blind
                else 'Move model and batches there, `model.to("cuda")`, or ask for no GPU.'
            ),
            subjects=watch.gpus,
        )
    ]
