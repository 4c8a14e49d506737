"""Do the packages fit together? `teho env check` asks the same."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, needs_python, not_applicable, symptom
from teho.doctor.snapshot import Python, Snapshot
from teho.model.finding import Severity
from teho.software.check import Target
from teho.software.check import check as check_packages
from teho.units import counted

__all__ = ["ABOUT", "check"]

ABOUT = "packages that conflict, or that do not work with these GPUs"

_JUDGED_ELSEWHERE = {"no_framework", "cpu_only_build", "driver_too_old", "gpu_not_supported"}
"""By checks that also read what the frameworks report."""


@needs_python
def check(snapshot: Snapshot, python: Python) -> Outcome:
    """Compare the packages with each other, and with the first GPU of the node or the site."""
    if not python.frameworks:
        return not_applicable(f"{python.path} has no GPU framework")
    checked = check_packages(
        python.packages, source=python.path, form="", target=_target(snapshot), facts=python.facts
    )
    found = [
        symptom(
            Severity(problem.severity),
            problem.sentence,
            problem.action,
            ("details", problem.evidence, ""),
        )
        for problem in checked.problems
        if problem.kind not in _JUDGED_ELSEWHERE
    ]
    return found or fine(f"{counted(len(python.packages), 'package')} found, without a conflict")


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
