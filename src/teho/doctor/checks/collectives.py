"""NCCL or RCCL is there where GPUs are to talk to each other."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import FrameworkReport, Snapshot
from teho.explain.wording import joined
from teho.model.finding import Severity
from teho.model.missing import Missing

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "collectives"
ABOUT = "NCCL or RCCL, where there are several GPUs"
DECISIVE = False


def check(snapshot: Snapshot) -> Outcome:
    """Ask for it where the job has more than one GPU."""
    nodes = snapshot.allocation.node_count or 1
    if len(snapshot.gpus) < 2 and (nodes == 1 or not snapshot.gpus):
        return moot("there are not several GPUs")
    python = snapshot.python
    if isinstance(python, Missing):
        return unknown(f"no Python could be asked: {python.detail}")
    told = {
        name: report
        for name, report in python.framework_reports.items()
        if isinstance(report, FrameworkReport)
        and report.collectives is not None
        and report.kind != "cpu"
    }
    if not told:
        if any(one.kind != "cpu" for one in python.frameworks):
            return unknown("no framework reports whether it has NCCL or RCCL")
        return moot(f"no framework for GPUs in {python.path}")
    lacking = [name for name, report in told.items() if not report.collectives]
    if not lacking:
        return fine(f"{joined(list(told))} {'has' if len(told) == 1 else 'have'} it")
    kind = "RCCL" if any(told[name].kind == "rocm" for name in lacking) else "NCCL"
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"{joined(lacking)} came without {kind}: its GPUs cannot talk to each other directly.",
            f"Install a build with {kind}: `teho env plan` proposes one; Gloo, the other choice, "
            "goes through the CPU.",
            ("GPUs here", len(snapshot.gpus), ""),
            ("nodes", nodes, ""),
        )
    ]
