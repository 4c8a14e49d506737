"""A GPU's clocks were held down by heat."""

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
    """Find GPUs slowed by heat, or too hot.

    Each of the two is found from its own signal, whether or not the other is there.
    """
    look = Look(KIND, run, summary, thresholds)
    slowed: list[tuple[Gpu, float]] = []
    hot: list[tuple[Gpu, float]] = []
    for of in look.gpus:
        heat = look.stat(of, "gpu_thermal_throttle_percent")
        temperature = look.stat(of, "gpu_temperature_c")
        if heat and heat.mean >= look.limit("thermal_percent"):
            slowed.append((of, heat.mean))
        elif temperature and temperature.max >= look.limit("temperature_c"):
            hot.append((of, temperature.max))
    findings = []
    if slowed:
        findings.append(_by_heat(look, slowed))
    if hot:
        findings.append(_too_hot(look, hot))
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
