"""Every framework sees as many GPUs as the driver shows."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, spared, symptom, unknown
from teho.doctor.snapshot import FrameworkReport, Snapshot
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.model.finding import Severity
from teho.model.missing import Missing
from teho.model.software import Build

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "framework-sees-gpus"
ABOUT = "GPUs that the frameworks see, each asked in a process of its own"
DECISIVE = True


def check(snapshot: Snapshot) -> Outcome:
    """Compare what each framework counts with what the driver shows."""
    python = snapshot.python
    if isinstance(python, Missing):
        return unknown(f"no Python could be asked: {python.detail}")
    if not python.frameworks:
        return moot(f"no GPU framework in {python.path}")
    if not snapshot.expects_gpus:
        return moot("no GPU is here for a framework to see")
    if snapshot.failed_drivers:
        return unknown("a driver that does not answer would hang the frameworks too")
    builds = [one for one in python.frameworks if python.kind_of(one) != "cpu"]
    if not builds:
        return moot(f"no framework for GPUs in {python.path}")
    gone: list[str] = []
    found: list[Symptom] = []
    for build in builds:
        report = python.framework_reports.get(build.framework)
        if not isinstance(report, FrameworkReport):
            gone.append(report.detail if report else f"{build.package} was not asked")
        elif report.gpus is None and not report.broken:
            gone.append(f"{build.package} does not say how many it sees")
        else:
            found += _judged(snapshot, build, report)
    if found:
        return spared(found, len(builds))
    if gone:
        return unknown("; ".join(gone))
    return fine(f"{joined([one.framework for one in builds])}: {len(snapshot.gpus)} each")


def _judged(snapshot: Snapshot, build: Build, report: FrameworkReport) -> list[Symptom]:
    if report.broken:
        return [
            symptom(
                ID,
                Severity.CRITICAL,
                f"{build.package} cannot be imported: {report.broken}.",
                "Create the environment again: `teho env plan` writes the commands; or load the "
                "modules that it was made with.",
                ("version", report.version or build.version, ""),
                dooms=True,
            )
        ]
    wanted = 1 if any(gpu.parent_id for gpu in snapshot.gpus) else len(snapshot.gpus)
    if report.gpus is None or report.gpus >= wanted:
        return []
    said = f": {report.why}" if report.why else ""
    return [
        symptom(
            ID,
            Severity.WARNING if report.gpus else Severity.CRITICAL,
            f"{build.package} sees {report.gpus} GPUs, and the driver shows {wanted}{said}.",
            "Compare it with what `teho doctor` says of driver, build and container; if nothing "
            "is wrong there, report it to the administrator of the node.",
            ("version", report.version or build.version, ""),
            ("seen by the framework", report.gpus, "GPUs"),
            ("seen by the driver", wanted, "GPUs"),
            dooms=report.gpus == 0,
        )
    ]
