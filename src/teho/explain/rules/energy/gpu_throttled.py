"""Heat slowed a GPU, or the GPU was too hot."""

from __future__ import annotations

from operator import ge

from teho.explain.limits import Level, compare_with_limits
from teho.explain.places import NodeGpu, gauges
from teho.explain.rule import Certainty, Findings, RuleContext, Severity, Threshold, chosen

RANK = 510
SEVERITY = "warning"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "temperature_c": Threshold(
        90.0, "°C", "Omnistat, a monitoring tool, reports GPUs at 90 °C or more"
    ),
    "thermal_percent": chosen(5.0, "%", "heat may slow a GPU for a short time by chance"),
}


def judge(context: RuleContext) -> Findings:
    """Find GPUs that heat slowed, or that were too hot.

    The two signals are judged separately: one of them is enough.
    """
    slowed: list[tuple[NodeGpu, float]] = []
    others: list[tuple[NodeGpu, float | None]] = []
    for gpu in context.gpus:
        share = context.mean(gpu, "gpu_thermal_throttle_percent")
        temperature = context.stat(gpu, "gpu_temperature_c")
        if share is not None and share >= context.limit("thermal_percent"):
            slowed.append((gpu, share))
        else:
            others.append((gpu, temperature.max if temperature else None))
    yield from compare_with_limits(
        context,
        slowed,
        [Level(Severity.WARNING, ge, "thermal_percent")],
        sentence="{places} {was} slowed by heat in {figures} of the samples.",
        label="samples in which heat slowed the GPU",
        further=lambda gpus: gauges(gpus, "gpu_temperature_c", "max"),
        action=lambda gpus: _cooling(context, gpus),
        shown_by="gpu_thermal_throttle_percent",
    )
    yield from compare_with_limits(
        context,
        others,
        [Level(Severity.WARNING, ge, "temperature_c")],
        sentence="{places} reached {figures}.",
        label="GPU temperature, highest",
        unit="°C",
        action=lambda gpus: _cooling(context, gpus),
        shown_by="gpu_temperature_c",
    )


def _cooling(context: RuleContext, gpus: list[NodeGpu]) -> str:
    nodes = ",".join(dict.fromkeys(gpu.node.name for gpu in gpus))
    if context.scheduler is None:
        return (
            "Clean the air inlets of the computer, and check its fans. `nvidia-smi -q -d "
            "TEMPERATURE` shows the temperature of the GPU."
        )
    option = context.scheduler_advice.leave_out(nodes)
    avoid = f" Until the cooling is repaired, leave out the node: {option}." if option else ""
    return f"Report {nodes} to the cluster's support, which is responsible for cooling.{avoid}"
