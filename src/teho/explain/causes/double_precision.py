"""The program computes with 64 bits where 32 would probably do."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "double_precision"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at the types of what is trained, and of what it is fed."""
    watch = Watch(KIND, run, summary, thresholds)
    for main in watch.mains:
        sizes = main.library.get("parameter_dtypes")
        if not isinstance(sizes, dict) or not sizes:
            continue
        doubles = sum(size for name, size in sizes.items() if name in ("float64", "complex128"))
        share = 100 * doubles / sum(sizes.values())
        computing = main.percent(Doing.COMPUTING, Doing.DEVICE, Doing.COPYING)
        if share < watch.limit("double_percent"):
            continue
        return [
            watch.lost(
                f"The model has 64-bit parameters, {share:.0f} % of all: twice the memory and half "
                "the speed of 32 bits, and far less on most GPUs.",
                share_percent=computing / 2,
                evidence=(
                    Evidence("64-bit parameters", share, "%"),
                    Evidence("computing", computing, "%"),
                ),
                judged_by=["double_percent"],
                action=(
                    "Make it 32 bits where the result allows: `model.float()`, "
                    "`torch.from_numpy(x).float()`; NumPy's arrays are 64 bits unless told "
                    "otherwise, `np.zeros(n, dtype=np.float32)`."
                ),
                regain_percent=(0.0, computing / 2),
            )
        ]
    return []
