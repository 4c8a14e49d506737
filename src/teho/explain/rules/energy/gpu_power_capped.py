"""A GPU ran at a power limit that is lower than the maker's."""

from __future__ import annotations

from operator import ge

from teho.explain.limits import Level, compare_with_limits
from teho.explain.places import NodeGpu, gauges, per_place
from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen
from teho.model.missing import Missing, Reason

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
    "of_default_percent": chosen(
        98.0,
        "%",
        "a limit that differs by less from the maker's limit hardly changes the speed",
    ),
}


def judge(context: RuleContext) -> Findings:
    """Find GPUs that a power limit below the maker's slowed for much of the time.

    A GPU with much work normally reaches the maker's limit: nobody has to change anything.
    """
    yield from compare_with_limits(
        context,
        [
            (gpu, share)
            for gpu, share in context.means("gpu_power_throttle_percent")
            if share is not None
            and share >= context.limit("power_percent")
            and _is_lowered(context, gpu)
        ],
        [Level(Severity.REMARK, ge, "power_percent")],
        sentence="{places} ran at {its} power limit in {figures} of the samples. This limit is "
        "lower than the maker's limit, and makes the GPU slower.",
        label="samples in which the power limit slowed the GPU",
        further=_power,
        judged_by=["of_default_percent"],
        shown_by="gpu_power_throttle_percent",
        action=(
            "Ask the cluster's support why the limit is lower. A lower limit saves energy: the "
            "work may need less energy than with the maker's limit, although it takes longer."
        ),
    )


def _is_lowered(context: RuleContext, gpu: NodeGpu) -> bool:
    device = gpu.gpu.device
    unknown = Missing(Reason.UNRECORDED, "the driver did not report it")
    limit_w = context.figure(gpu, "power limit", device.power_limit_w or unknown)
    default_w = context.figure(gpu, "the maker's power limit", device.power_default_w or unknown)
    if limit_w is None or default_w is None:
        return False
    return 100 * limit_w < context.limit("of_default_percent") * default_w


def _power(gpus: list[NodeGpu]) -> tuple[Evidence, ...]:
    limits = [(gpu, limit_w) for gpu in gpus if (limit_w := gpu.gpu.device.power_limit_w)]
    defaults = [(gpu, limit_w) for gpu in gpus if (limit_w := gpu.gpu.device.power_default_w)]
    return (
        *gauges(gpus, "gpu_power_w", "max"),
        *per_place("power limit", "W", limits),
        *per_place("the maker's power limit", "W", defaults),
    )
