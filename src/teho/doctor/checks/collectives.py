"""Do the frameworks have NCCL or RCCL if there are several GPUs?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, not_applicable, unknown, warning
from teho.doctor.snapshot import FrameworkReport, Snapshot
from teho.explain.wording import joined
from teho.model.missing import Missing

__all__ = ["ABOUT", "check"]

ABOUT = "NCCL or RCCL, for several GPUs"


def check(snapshot: Snapshot) -> Outcome:
    """Read whether each framework has it, if the job has more than one GPU."""
    nodes = snapshot.allocation.node_count or 1
    if len(snapshot.gpus) < 2 and (nodes == 1 or not snapshot.gpus):
        return not_applicable("there are fewer than two GPUs")
    python = snapshot.python
    if isinstance(python, Missing):
        return unknown(f"Teho cannot read the Python installation: {python.detail}")
    reports = {
        name: report
        for name, report in python.framework_reports.items()
        if isinstance(report, FrameworkReport)
        and report.collectives is not None
        and report.kind != "cpu"
    }
    if not reports:
        if any(one.kind != "cpu" for one in python.frameworks):
            return unknown("no framework reports whether it has NCCL or RCCL")
        return not_applicable(f"{python.path} has no framework for GPUs")
    lacking = [name for name, report in reports.items() if not report.collectives]
    if not lacking:
        return fine(
            f"{joined(list(reports))} {'has' if len(reports) == 1 else 'have'} NCCL or RCCL"
        )
    kind = "RCCL" if any(reports[name].kind == "rocm" for name in lacking) else "NCCL"
    return warning(
        f"{joined(lacking)} {'has' if len(lacking) == 1 else 'have'} no {kind}, a library for "
        "the exchange of data. So the program's GPUs cannot exchange data directly.",
        f"Install a build with {kind}: `teho env plan` proposes one. The library Gloo also works, "
        "but it copies the data through the CPU.",
        ("GPUs here", len(snapshot.gpus), ""),
        ("nodes", nodes, ""),
    )
