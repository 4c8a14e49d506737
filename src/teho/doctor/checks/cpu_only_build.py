"""A framework that was built without GPUs, where GPUs are, or will be."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Snapshot
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.model.finding import Severity
from teho.model.missing import Missing
from teho.model.software import Build

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "cpu-only-build"
ABOUT = "what the frameworks were built for"
DECISIVE = True


def check(snapshot: Snapshot) -> Outcome:
    """Tell a build for GPUs from one for CPUs, by its own word or that of its package."""
    python = snapshot.python
    if isinstance(python, Missing):
        return unknown(f"no Python could be asked: {python.detail}")
    if not python.frameworks:
        return moot(f"no GPU framework in {python.path}")
    if not snapshot.expects_gpus and not snapshot.site_gpus:
        return moot("no GPU is here, and this is not a login node of a cluster with GPUs")
    kinds = {one.framework: python.kind_of(one) for one in python.frameworks}
    lacking = [one for one in python.frameworks if kinds[one.framework] == "cpu"]
    if lacking:
        alone = len(lacking) == len(kinds)
        return [_found(snapshot, one, alone=alone) for one in lacking]
    unsure = [
        f"{one.package} {one.version}"
        for one in python.frameworks
        if kinds[one.framework] == "unknown"
    ]
    if unsure:
        return unknown(f"{joined(unsure)} does not say what it was built for")
    return fine(joined([f"{name} for {kind.upper()}" for name, kind in kinds.items()]))


def _found(snapshot: Snapshot, build: Build, *, alone: bool) -> Symptom:
    where = "here" if snapshot.expects_gpus else "on the compute nodes"
    return symptom(
        ID,
        Severity.CRITICAL if alone else Severity.WARNING,
        f"{build.package} {build.version} is a build for CPUs only: it will not use the GPUs "
        f"{where}.",
        "Create the environment again with a build for GPUs: `teho env plan` writes the commands "
        "for this cluster; with conda on a node without GPU, `CONDA_OVERRIDE_CUDA` must be set.",
        ("what tells", build.evidence or "its own word", ""),
        dooms=alone and snapshot.expects_gpus,
    )
