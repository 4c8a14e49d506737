"""Does every framework see all GPUs that the driver shows?"""

from __future__ import annotations

from teho.doctor.outcome import (
    Outcome,
    critical,
    fine,
    needs_python,
    not_applicable,
    unknown,
    warning,
    without_fatal,
)
from teho.doctor.snapshot import FrameworkReport, Python, Snapshot
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.units import counted

__all__ = ["ABOUT", "DECISIVE", "check"]

ABOUT = "number of GPUs that each framework sees (tested in a separate process)"
DECISIVE = True


@needs_python
def check(snapshot: Snapshot, python: Python) -> Outcome:
    """Compare the number of GPUs that each framework sees with the driver's number."""
    if not python.frameworks:
        return not_applicable(f"{python.path} has no GPU framework")
    if not snapshot.expects_gpus:
        return not_applicable("there is no GPU here that a framework could see")
    if snapshot.failed_drivers:
        return unknown(
            "the driver does not answer, so Teho did not start the frameworks: they would hang"
        )
    builds = python.gpu_builds
    if not builds:
        return not_applicable(f"{python.path} has no framework for GPUs")
    wanted = 1 if any(gpu.parent_id for gpu in snapshot.gpus) else len(snapshot.gpus)
    missing: list[str] = []
    found: list[Symptom] = []
    for build in builds:
        report = python.framework_reports.get(build.framework)
        if not isinstance(report, FrameworkReport):
            not_checked = f"Teho did not ask {build.package} which GPUs it sees"
            missing.append(report.detail if report else not_checked)
            continue
        version = ("version", report.version or build.version, "")
        if report.broken:
            found.append(
                critical(
                    f"{build.package} cannot be imported: {report.broken}.",
                    "Create the environment again: `teho env plan` writes the commands. Or load "
                    "the modules that were loaded when the environment was made.",
                    version,
                    is_fatal=True,
                )
            )
        elif report.gpus is None:
            missing.append(f"{build.package} does not say how many GPUs it sees")
        elif report.gpus < wanted:
            found.append(
                (warning if report.gpus else critical)(
                    f"{build.package} sees {counted(report.gpus, 'GPU')}, but the driver shows "
                    f"{wanted}{f': {report.why}' if report.why else ''}.",
                    "First solve the problems with the driver, the build and the container that "
                    "`teho doctor` shows. If `teho doctor` shows no such problem, report this to "
                    "the administrator of the node.",
                    version,
                    ("seen by the framework", report.gpus, "GPUs"),
                    ("seen by the driver", wanted, "GPUs"),
                    is_fatal=report.gpus == 0,
                )
            )
    if found:
        return without_fatal(found, len(builds))
    if missing:
        return unknown("; ".join(missing))
    see = "sees" if len(builds) == 1 else "each see"
    names = joined([one.framework for one in builds])
    return fine(f"{names} {see} {counted(wanted, 'GPU')}")
