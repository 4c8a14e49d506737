"""A GPU's clocks were held down by heat or by its power limit."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Gpu, Look, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_throttled"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs slowed by heat, too hot, or held at their power limit.

    Each of the three is found from its own signal, whether or not the others are there.
    """
    look = Look(KIND, run, summary, thresholds)
    slowed: list[tuple[Gpu, float]] = []
    hot: list[tuple[Gpu, float]] = []
    capped: list[tuple[Gpu, float]] = []
    for of in look.gpus:
        heat = look.stat(of, "gpu_thermal_throttle_percent")
        temperature = look.stat(of, "gpu_temperature_c")
        power = look.stat(of, "gpu_power_throttle_percent")
        if heat and heat.mean >= look.limit("thermal_percent"):
            slowed.append((of, heat.mean))
        elif temperature and temperature.max >= look.limit("temperature_c"):
            hot.append((of, temperature.max))
        if power and power.mean >= look.limit("power_percent"):
            capped.append((of, power.mean))
    findings = []
    if slowed:
        findings.append(_by_heat(look, slowed))
    if hot:
        findings.append(_too_hot(look, hot))
    if capped:
        findings.append(_by_power(look, capped))
    return look.outcome(findings)


def _by_heat(look: Look, slowed: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in slowed]
    return look.finding(
        Severity.WARNING,
        f"{name_all(places)} {'was' if len(places) == 1 else 'were'} slowed by heat in "
        f"{span([share for _, share in slowed], '%')} of the samples.",
        evidence=(
            *per_place("slowed by heat", "%", slowed),
            *per_place("GPU temperature, highest", "°C", known(places, "gpu_temperature_c", "max")),
        ),
        judged_by=["thermal_percent"],
        action=_cooling(look, places),
        subjects=places,
    )


def _too_hot(look: Look, hot: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in hot]
    return look.finding(
        Severity.WARNING,
        f"{name_all(places)} reached {span([degrees for _, degrees in hot], '°C')}.",
        evidence=per_place("GPU temperature, highest", "°C", hot),
        judged_by=["temperature_c"],
        action=_cooling(look, places),
        subjects=places,
    )


def _cooling(look: Look, places: list[Gpu]) -> str:
    nodes = ",".join(dict.fromkeys(of.node.name for of in places))
    if look.scheduler is None:
        return "Clear the air inlets and check the fans with `nvidia-smi -q -d TEMPERATURE`."
    avoid = f" and leave the node out for now: `--exclude={nodes}`"
    return (
        f"Cooling is the site's matter: report {nodes} to its support"
        f"{avoid if look.scheduler == 'slurm' else ''}."
    )


def _by_power(look: Look, capped: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in capped]
    return look.finding(
        Severity.REMARK,
        f"{name_all(places)} ran at {'its' if len(places) == 1 else 'their'} power limit in "
        f"{span([share for _, share in capped], '%')} of the samples.",
        evidence=(
            *per_place("slowed by the power cap", "%", capped),
            *per_place("GPU power, highest", "W", known(places, "gpu_power_w", "max")),
        ),
        judged_by=["power_percent"],
        action=(
            "Nothing, where the GPU is hard at work. If the limit is lower than its maker's, as "
            "`nvidia-smi -q -d POWER` tells, someone set it."
        ),
        subjects=places,
    )
