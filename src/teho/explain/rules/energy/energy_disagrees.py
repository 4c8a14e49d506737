"""A GPU's energy counter stopped, or does not agree with the power of this GPU."""

from __future__ import annotations

from teho.explain.places import NodeGpu, name_all, per_column
from teho.explain.rule import Findings, Located, RuleContext, Severity, chosen
from teho.explain.wording import span
from teho.model.missing import Missing

RANK = 560
SEVERITY = "remark"
THRESHOLDS = {
    "apart_percent": chosen(
        5.0,
        "%",
        "if the power sensor and the energy counter of one GPU differ by more than 5 %, one "
        "of the two is wrong",
    ),
}


def judge(context: RuleContext) -> Findings:
    """Find counters that stopped, or that do not agree with the power.

    If the counter or the power is missing, the question does not arise.
    """
    stopped: list[tuple[NodeGpu, float]] = []
    differing: list[tuple[NodeGpu, float]] = []
    for gpu in context.gpus:
        energy = gpu.gpu.energy
        difference, chance = energy.difference_percent, energy.chance_percent
        if energy.stuck_s:
            stopped.append((gpu, energy.stuck_s))
        elif isinstance(difference, Missing) or isinstance(chance, Missing):
            continue
        elif abs(difference) > max(context.limit("apart_percent"), chance):
            differing.append((gpu, difference))
    if stopped:
        times = span([time_s for _, time_s in stopped], "s")
        who = "the GPU" if len(stopped) == 1 else "the GPUs"
        yield _finding(
            context,
            stopped,
            f"did not advance for {times}, although {who} used power. So Teho computes the "
            "energy as power times time",
            ("time in which the energy counter did not advance", "s"),
            "Report this to the cluster's support, because the cluster's accounting may use the "
            "same counter.",
        )
    if differing:
        percents = span([abs(percent) for _, percent in differing], "%")
        yield _finding(
            context,
            differing,
            f"disagree by {percents}",
            ("energy from the counter minus energy from power times time", "%"),
            "Do not rely on the energy in this report. Measure the power more often: `teho run "
            "--every 200ms -- CMD`. If counter and power still disagree, one of the two sensors is "
            "wrong.",
            what=" and the power",
        )


def _finding(
    context: RuleContext,
    found: list[tuple[NodeGpu, float]],
    how: str,
    figures: tuple[str, str],
    action: str,
    what: str = "",
) -> Located:
    gpus = [gpu for gpu, _ in found]
    both = [(gpu, gpu.gpu.energy.counter_j, gpu.gpu.energy.integrated_j) for gpu in gpus]
    return context.finding(
        Severity.REMARK,
        f"The energy counter{'' if len(gpus) == 1 else 's'}{what} of {name_all(gpus)} {how}.",
        evidence=(
            *per_column(found, figures),
            *per_column(
                both, ("energy from the counter", "J"), ("energy from power times time", "J")
            ),
        ),
        action=action,
        subjects=gpus,
    )
