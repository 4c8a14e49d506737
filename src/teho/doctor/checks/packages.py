"""Packages that do not go together: what `teho env check` finds in a list of them."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Snapshot
from teho.model.finding import Severity
from teho.model.missing import Missing
from teho.software.check import Target
from teho.software.check import check as check_packages
from teho.units import counted

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "packages"
ABOUT = "packages that do not go together, or not with these GPUs"
DECISIVE = False

_JUDGED_ELSEWHERE = {"no_framework", "cpu_only_build", "driver_too_old", "gpu_not_supported"}
"""By checks that hear the frameworks themselves as well."""


def check(snapshot: Snapshot) -> Outcome:
    """Hold the packages against each other, and against the first GPU, here or of the site."""
    python = snapshot.python
    if isinstance(python, Missing):
        return unknown(f"no Python could be asked: {python.detail}")
    if not python.frameworks:
        return moot(f"no GPU framework in {python.path}")
    checked = check_packages(
        python.packages, source=python.path, form="", target=_target(snapshot), facts=python.facts
    )
    found = [
        symptom(
            ID,
            Severity(problem.severity),
            problem.sentence,
            problem.action,
            ("what tells", problem.evidence, ""),
        )
        for problem in checked.problems
        if problem.kind not in _JUDGED_ELSEWHERE
    ]
    count = len(python.packages)
    return found or fine(f"{counted(count, 'package')}, and nothing at odds")


def _target(snapshot: Snapshot) -> Target:
    cluster = snapshot.cluster.name if snapshot.cluster else ""
    if snapshot.gpus:
        device = snapshot.gpus[0]
        return Target(
            driver=snapshot.nvidia_driver,
            vendor=device.vendor,
            gpu=device.name,
            capability=device.architecture if device.vendor == "nvidia" else "",
            cluster=cluster,
        )
    if len({gpu.vendor for gpu in snapshot.site_gpus}) != 1:
        return Target(cluster=cluster)
    models = dict.fromkeys(gpu.model for gpu in snapshot.site_gpus if not gpu.part_of)
    return Target(vendor=snapshot.site_gpus[0].vendor, gpu=" or ".join(models), cluster=cluster)
