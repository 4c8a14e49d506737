"""The results of `teho env check` and `teho env plan` as documents."""

from __future__ import annotations

from collections.abc import Iterable

from teho.model.document import Document, Fact, Item
from teho.model.finding import Evidence, Finding, Severity
from teho.model.software import Checked, EnvironmentPlan, Refused
from teho.show.build.layout import column, document, listing, table
from teho.software.check import verdict_of
from teho.software.choose import ACCELERATORS, TITLES, purpose_of

__all__ = ["checked_document", "env_plan_document", "refused_document"]


def checked_document(checked: Checked) -> Document:
    """Lay out the builds of an environment and their problems."""
    severity, verdict = verdict_of(checked)
    driver = checked.driver
    builds = table(
        "builds",
        "Builds",
        checked.builds,
        column("framework", "Framework",
               lambda one: TITLES[one.framework] if one.framework else one.package),
        column("package", "Package", lambda one: f"{one.package} {one.version}"),
        column("kind", "Built for",
               lambda one: f"{ACCELERATORS[one.kind]} {one.toolkit}".strip()),
        column("evidence", "Reported by", lambda one: one.evidence),
    )  # fmt: skip
    unchecked = [Item(text=text, severity="unknown") for text in checked.not_checked]
    driver_text = None
    if driver:
        driver_text = f"{driver.version} for CUDA {driver.cuda or '(version not known)'}"
    return document(
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
                driver_text and driver_text.lstrip(),
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
        tables=(builds,),
        lists=(listing("not_checked", "Not checked", unchecked),),
    )


def refused_document(what: str, refused: Iterable[Refused]) -> Document:
    """Lay out why no build fits."""
    items = [Item(lead=one.what, text=one.why, details=(one.source,)) for one in refused]
    return document(
        title="teho env plan",
        verdict=f"No {what} fits.",
        verdict_severity="critical",
        lists=(listing("refused", "Why not", items),),
    )


def env_plan_document(plan: EnvironmentPlan) -> Document:
    """Lay out the steps of a plan, and the newer builds that do not fit."""
    cautions = [Item(text=text, severity="warning") for text in plan.cautions]
    steps = [Item(text=step.comment, code=step.lines) for step in plan.steps]
    job = (
        *plan.job.lines,
        *([f"{plan.job.run_prefix} python train.py"] * bool(plan.job.run_prefix)),
    )
    proposal = plan.proposal
    newer = [
        Item(lead=f"Not {one.what}", text=one.why, details=(one.source,))
        for one in (proposal.refused if proposal else ())
    ]
    return document(
        title=f"teho env plan · {plan.title}",
        verdict=purpose_of(plan),
        verdict_severity="good",
        facts=(Fact("name", "Name", plan.name), Fact("gpu", "GPU", plan.gpu)),
        lists=(
            listing("cautions", "Read first", cautions),
            listing("steps", "Once, on a login node", steps),
            listing("job", "In each job", [Item(text="", code=job)]),
            listing("refused", "Newer, but refused", newer, "why"),
        ),
        notes=tuple(
            f"Source: {source}"
            for source in (plan.source, proposal.source if proposal else "")
            if source
        ),
    )
