"""Is a framework built only for CPUs, although there are GPUs?"""

from __future__ import annotations

from teho.doctor.outcome import (
    Outcome,
    critical,
    fine,
    needs_python,
    not_applicable,
    unknown,
    warning,
)
from teho.doctor.snapshot import Python, Snapshot
from teho.explain.wording import joined

__all__ = ["ABOUT", "DECISIVE", "check"]

ABOUT = "what the frameworks were built for"
DECISIVE = True


@needs_python
def check(snapshot: Snapshot, python: Python) -> Outcome:
    """Judge each build by what the framework or its package reports."""
    if not python.frameworks:
        return not_applicable(f"{python.path} has no GPU framework")
    if not snapshot.expects_gpus and not snapshot.site_gpus:
        return not_applicable("no GPU here, and this is not a login node of a cluster with GPUs")
    kinds = {one.framework: python.kind_of(one) for one in python.frameworks}
    lacking = [one for one in python.frameworks if kinds[one.framework] == "cpu"]
    unsure = [one for one in python.frameworks if kinds[one.framework] == "unknown"]
    if lacking:
        is_all = len(lacking) == len(kinds)
        place = "here" if snapshot.expects_gpus else "on the compute nodes"
        return [
            (critical if is_all else warning)(
                f"{one.package} {one.version} is a build for CPUs only, so programs will not use "
                f"the GPUs {place}.",
                "Create the environment again with a build for GPUs: `teho env plan` writes the "
                "commands for this cluster. On a node without a GPU, conda installs a build for "
                "CPUs, unless you set `CONDA_OVERRIDE_CUDA` to the CUDA version of the GPU nodes.",
                ("Teho knows this from", _source_of(one.evidence), ""),
                is_fatal=is_all and snapshot.expects_gpus,
            )
            for one in lacking
        ]
    if unsure:
        names = joined([f"{one.package} {one.version}" for one in unsure])
        return unknown(f"{names} does not report for which CUDA or ROCm version it was built")
    return fine(joined([f"{name} for {kind.upper()}" for name, kind in kinds.items()]))


def _source_of(evidence: str) -> str:
    """Return how Teho knows the kind of a build, for example from the name of the build."""
    if evidence.startswith("build "):
        return evidence.replace("build ", "the name of the build: ", 1)
    return evidence or "the framework itself"
