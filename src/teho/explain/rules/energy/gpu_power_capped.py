"""A GPU ran at its power limit."""

from __future__ import annotations

from operator import ge

from teho.explain.limits import Level, compare_with_limits
from teho.explain.places import NodeGpu, gauges, per_place
from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen

RANK = 520
SEVERITY = "remark"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "power_percent": chosen(
        50.0,
        "%",
        "a busy GPU normally runs at its power limit for a part of the time, so Teho reports only "
        "GPUs that do this for half of the time or more",
    ),
}


def judge(context: RuleContext) -> Findings:
    """Find GPUs that the power limit slowed for much of the time."""
    yield from compare_with_limits(
        context,
        context.means("gpu_power_throttle_percent"),
        [Level(Severity.REMARK, ge, "power_percent")],
        sentence="{places} ran at {its} power limit in {figures} of the samples.",
        label="samples in which the power limit slowed the GPU",
        further=_power,
        shown_by="gpu_power_throttle_percent",
        action=(
            "A GPU with much work normally reaches its power limit, so you do not have to change "
            "anything. `nvidia-smi -q -d POWER` shows the present limit and the maker's limit. If "
            "the present limit is lower than the maker's limit, ask the cluster's support why."
        ),
    )


def _power(gpus: list[NodeGpu]) -> tuple[Evidence, ...]:
    limits = [(gpu, limit_w) for gpu in gpus if (limit_w := gpu.gpu.device.power_limit_w)]
    return (*gauges(gpus, "gpu_power_w", "max"), *per_place("power limit", "W", limits))
