"""A GPU's energy counter stopped, or does not agree with its power."""

from __future__ import annotations

from collections.abc import Iterator

from teho.explain.context import RuleContext
from teho.explain.places import NodeGpu, name_all, per_place
from teho.explain.rule import chosen
from teho.explain.wording import span
from teho.model.finding import Evidence, Finding, Severity
from teho.model.missing import Missing

RANK = 560
SEVERITY = "remark"
THRESHOLDS = {
    "apart_percent": chosen(
        5.0, "%", "if two sensors of a board differ by more than this, one of them is wrong"
    ),
}


def judge(context: RuleContext) -> Iterator[Finding]:
    """Find counters that stopped, or that do not agree with the power.

    If the counter or the power is missing, the question does not arise.
    """
    stopped: list[tuple[NodeGpu, float]] = []
    differing: list[tuple[NodeGpu, float]] = []
    for gpu in context.gpus:
        energy = gpu.gpu.energy
        difference, chance = energy.apart_percent, energy.chance_percent
        if energy.stuck_s:
            stopped.append((gpu, energy.stuck_s))
        elif isinstance(difference, Missing) or isinstance(chance, Missing):
            continue
        elif abs(difference) > max(context.limit("apart_percent"), chance):
            differing.append((gpu, difference))
    if stopped:
        gpus = [gpu for gpu, _ in stopped]
        yield context.finding(
            Severity.REMARK,
            f"The energy counter{'' if len(gpus) == 1 else 's'} of {name_all(gpus)} did not "
            f"advance for {span([time_s for _, time_s in stopped], 's')} although power was "
            "drawn; the energy is computed as power times time instead.",
            evidence=(*per_place("time with the counter stopped", "s", stopped), *_both(gpus)),
            judged_by=["apart_percent"],
            action="Report the counter to the site: the accounts of the site may use the same "
            "counter.",
            subjects=gpus,
        )
    if differing:
        gpus = [gpu for gpu, _ in differing]
        yield context.finding(
            Severity.REMARK,
            f"The energy counter{'' if len(gpus) == 1 else 's'} and the power of {name_all(gpus)} "
            f"disagree by {span([abs(percent) for _, percent in differing], '%')}.",
            evidence=(
                *per_place("energy from the counter minus power times time", "%", differing),
                *_both(gpus),
            ),
            judged_by=["apart_percent"],
            action=(
                "Do not rely on this energy. Sample the power more often, with `--every 200ms`. "
                "If counter and power still disagree, one of the sensors is wrong."
            ),
            subjects=gpus,
        )


def _both(gpus: list[NodeGpu]) -> tuple[Evidence, ...]:
    return tuple(
        evidence
        for label, figure in (
            ("energy from the counter", "counter_j"),
            ("energy from power times time", "integrated_j"),
        )
        for evidence in per_place(
            label, "J", [(gpu, getattr(gpu.gpu.energy, figure)) for gpu in gpus]
        )
    )
