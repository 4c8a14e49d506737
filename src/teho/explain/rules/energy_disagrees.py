"""A GPU's energy counter and its power do not agree."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Gpu, Look, name_all, per_place, span
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "energy_disagrees"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find counters that stood still, or that power does not bear out.

    Where there is no counter, or no power to hold against it, the question does not arise.
    """
    look = Look(KIND, run, summary, thresholds)
    stuck: list[tuple[Gpu, float]] = []
    apart: list[tuple[Gpu, float]] = []
    for of in look.gpus:
        energy = of.gpu.energy
        off, chance = energy.apart_percent, energy.chance_percent
        if energy.stuck_s:
            stuck.append((of, energy.stuck_s))
        elif isinstance(off, Missing) or isinstance(chance, Missing):
            continue
        elif abs(off) > max(look.limit("apart_percent"), chance):
            apart.append((of, off))
    findings = []
    if stuck:
        findings.append(_stuck(look, stuck))
    if apart:
        findings.append(_apart(look, apart))
    return look.outcome(findings)


def _stuck(look: Look, stuck: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in stuck]
    one = len(places) == 1
    return look.finding(
        Severity.REMARK,
        f"The energy counter{'' if one else 's'} of {name_all(places)} stood still for "
        f"{span([time_s for _, time_s in stuck], 's')} while power was drawn; "
        "energy is power times time instead.",
        evidence=(*per_place("counter stood still", "s", stuck), *_both(places)),
        judged_by=["apart_percent"],
        action="Report it to the site: such a counter is wrong in the site's accounts as well.",
        subjects=places,
    )


def _apart(look: Look, apart: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in apart]
    one = len(places) == 1
    return look.finding(
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


def _both(places: list[Gpu]) -> tuple[Evidence, ...]:
    return tuple(
        evidence
        for label, figure in (("by the counter", "counter_j"), ("by power", "integrated_j"))
        for evidence in per_place(
            label, "J", [(of, getattr(of.gpu.energy, figure)) for of in places]
        )
    )
