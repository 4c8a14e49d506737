"""A GPU's energy counter and its power do not agree."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, name_all, per_place, span
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "energy_disagrees"
RANK = 560
SAYS = "a GPU's energy counter stood still, or does not agree with its power"
SEVERITY = "remark"
THRESHOLDS = {
    "apart_percent": Threshold(
        5.0,
        "%",
        "Teho's own choice: two sensors of one board that differ by more are not both right",
    ),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find counters that stood still, or that power does not bear out.

    If there is no counter, or no power to hold against it, the question does not arise.
    """
    stuck: list[tuple[NodeGpu, float]] = []
    apart: list[tuple[NodeGpu, float]] = []
    for of in context.gpus:
        energy = of.gpu.energy
        off, chance = energy.apart_percent, energy.chance_percent
        if energy.stuck_s:
            stuck.append((of, energy.stuck_s))
        elif isinstance(off, Missing) or isinstance(chance, Missing):
            continue
        elif abs(off) > max(context.limit("apart_percent"), chance):
            apart.append((of, off))
    findings = []
    if stuck:
        findings.append(_stuck(context, stuck))
    if apart:
        findings.append(_apart(context, apart))
    return context.outcome(findings)


def _stuck(context: RuleContext, stuck: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in stuck]
    one = len(places) == 1
    return context.finding(
        Severity.REMARK,
        f"The energy counter{'' if one else 's'} of {name_all(places)} stood still for "
        f"{span([time_s for _, time_s in stuck], 's')} while power was drawn; "
        "energy is power times time instead.",
        evidence=(*per_place("counter stood still", "s", stuck), *_both(places)),
        judged_by=["apart_percent"],
        action="Report it to the site: such a counter is wrong in the site's accounts as well.",
        subjects=places,
    )


def _apart(context: RuleContext, apart: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in apart]
    one = len(places) == 1
    return context.finding(
        Severity.REMARK,
        f"The energy counter{'' if one else 's'} and the power of {name_all(places)} disagree by "
        f"{span([abs(off) for _, off in apart], '%')}.",
        evidence=(*per_place("counter above power times time", "%", apart), *_both(places)),
        judged_by=["apart_percent"],
        action=(
            "Take the energy with care. Power is looked at now and then only: `--every 200ms` "
            "looks more often, and if they still disagree, one of the two sensors is wrong."
        ),
        subjects=places,
    )


def _both(places: list[NodeGpu]) -> tuple[Evidence, ...]:
    return tuple(
        evidence
        for label, figure in (("by the counter", "counter_j"), ("by power", "integrated_j"))
        for evidence in per_place(
            label, "J", [(of, getattr(of.gpu.energy, figure)) for of in places]
        )
    )
