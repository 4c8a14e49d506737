"""A GPU's clocks were held down by heat."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_throttled"
RANK = 510
SAYS = "a GPU was slowed by heat, or was too hot"
SEVERITY = "warning"
THRESHOLDS = {
    "temperature_c": Threshold(90.0, "°C", "Omnistat: 90 °C"),
    "thermal_percent": Threshold(5.0, "%", "Teho's own choice: a few samples may be chance"),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs slowed by heat, or too hot.

    Each of the two is found from its own signal, whether or not the other is there.
    """
    slowed: list[tuple[NodeGpu, float]] = []
    hot: list[tuple[NodeGpu, float]] = []
    for of in context.gpus:
        heat = context.stat(of, "gpu_thermal_throttle_percent")
        temperature = context.stat(of, "gpu_temperature_c")
        if heat and heat.mean >= context.limit("thermal_percent"):
            slowed.append((of, heat.mean))
        elif temperature and temperature.max >= context.limit("temperature_c"):
            hot.append((of, temperature.max))
    findings = []
    if slowed:
        findings.append(_by_heat(context, slowed))
    if hot:
        findings.append(_too_hot(context, hot))
    return context.outcome(findings)


def _by_heat(context: RuleContext, slowed: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in slowed]
    return context.finding(
        Severity.WARNING,
        f"{name_all(places)} {'was' if len(places) == 1 else 'were'} slowed by heat in "
        f"{span([share for _, share in slowed], '%')} of the samples.",
        evidence=(
            *per_place("slowed by heat", "%", slowed),
            *per_place("GPU temperature, highest", "°C", known(places, "gpu_temperature_c", "max")),
        ),
        judged_by=["thermal_percent"],
        action=_cooling(context, places),
        subjects=places,
    )


def _too_hot(context: RuleContext, hot: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in hot]
    return context.finding(
        Severity.WARNING,
        f"{name_all(places)} reached {span([degrees for _, degrees in hot], '°C')}.",
        evidence=per_place("GPU temperature, highest", "°C", hot),
        judged_by=["temperature_c"],
        action=_cooling(context, places),
        subjects=places,
    )


def _cooling(context: RuleContext, places: list[NodeGpu]) -> str:
    nodes = ",".join(dict.fromkeys(of.node.name for of in places))
    if context.scheduler is None:
        return "Clear the air inlets and check the fans with `nvidia-smi -q -d TEMPERATURE`."
    option = context.scheduler_advice.leave_out(nodes)
    avoid = f" and leave the node out for now: {option}" if option else ""
    return f"Cooling is the site's matter: report {nodes} to its support{avoid}."
