"""A checked environment, a planned one, and why none fits, as documents."""

from __future__ import annotations

from collections.abc import Iterable

from teho.model.document import Cell, Column, Document, Fact, Item, Listing, Table
from teho.model.finding import Evidence, Finding, Severity
from teho.model.software import Checked, EnvironmentPlan, Refused
from teho.software.check import verdict_of
from teho.software.choose import ACCELERATORS, TITLES, purpose_of
from teho.version import __version__

__all__ = ["checked_document", "env_plan_document", "refused_document"]

_COLUMNS = (
    Column(key="framework", label="Framework"),
    Column(key="package", label="Package"),
    Column(key="kind", label="Built for"),
    Column(key="evidence", label="Reported by"),
)


def checked_document(checked: Checked) -> Document:
    """Lay out what was found in an environment."""
    severity, verdict = verdict_of(checked)
    driver = checked.driver
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "framework": TITLES[one.framework] if one.framework else one.package,
            "package": f"{one.package} {one.version}",
            "kind": f"{ACCELERATORS[one.kind]} {one.toolkit}".strip(),
            "evidence": one.evidence,
        }
        for one in checked.builds
    )
    unchecked = tuple(Item(text=text, severity="unknown") for text in checked.not_checked)
    return Document(
        title="teho env check",
        verdict=verdict,
        verdict_severity=severity,
        facts=(
            Fact("source", "", checked.source, note=checked.form),
            Fact("python", "Python", checked.python or None),
            Fact("cuda", "CUDA", checked.cuda or None),
            Fact("cudnn", "cuDNN", checked.cudnn or None),
            Fact("nccl", "NCCL", checked.nccl or None),
            Fact("gpu", "GPU", checked.gpu or None),
            Fact(
                "driver",
                "Driver",
                f"{driver.version} for CUDA {driver.cuda or 'that is not known'}".strip()
                if driver
                else None,
                note=driver.where if driver else "",
            ),
        ),
        findings=tuple(
            Finding(
                kind=one.kind,
                severity=Severity(one.severity),
                sentence=one.sentence,
                evidence=(Evidence("", one.evidence),),
                thresholds=(),
                action=one.action,
            )
            for one in checked.problems
        ),
        tables=(Table(key="builds", title="Builds", columns=_COLUMNS, rows=rows),),
        lists=(Listing(key="not_checked", title="Not checked", items=unchecked),),
        teho_version=__version__,
    )


def refused_document(what: str, refused: Iterable[Refused]) -> Document:
    """Lay out that no build fits, and why each does not."""
    items = tuple(Item(lead=one.what, text=one.why, details=(one.source,)) for one in refused)
    return Document(
        title="teho env plan",
        verdict=f"No {what} fits.",
        verdict_severity="critical",
        lists=(Listing(key="refused", title="Why not", items=items),),
        teho_version=__version__,
    )


def env_plan_document(plan: EnvironmentPlan) -> Document:
    """Lay out a plan: its steps, and why it is this one."""
    steps = tuple(Item(text=step.comment, code=step.lines) for step in plan.steps)
    job = (
        *plan.job.lines,
        *([f"{plan.job.run_prefix} python train.py"] * bool(plan.job.run_prefix)),
    )
    proposal = plan.proposal
    newer = tuple(
        Item(lead=f"Not {one.what}", text=one.why, details=(one.source,))
        for one in (proposal.refused if proposal else ())
    )
    return Document(
        title=f"teho env plan · {plan.title}",
        verdict=purpose_of(plan),
        verdict_severity="good",
        facts=(Fact("name", "Name", plan.name), Fact("gpu", "GPU", plan.gpu)),
        lists=(
            Listing(
                key="cautions",
                title="Read first",
                items=tuple(Item(text=text, severity="warning") for text in plan.cautions),
            ),
            Listing(key="steps", title="Once, on a login node", items=steps),
            Listing(key="job", title="In each job", items=(Item(text="", code=job),)),
            Listing(key="refused", title="Newer, but refused", items=newer, level="why"),
        ),
        notes=tuple(
            f"Source: {source}"
            for source in (plan.source, proposal.source if proposal else "")
            if source
        ),
        teho_version=__version__,
    )
