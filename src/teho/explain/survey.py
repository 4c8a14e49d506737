"""The verdict about a machine: which GPUs a program would use, and what can be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from teho.explain.wording import capital
from teho.model.device import Device
from teho.model.document import VerdictSeverity
from teho.model.missing import Missing, Reason
from teho.model.survey import Answers, Signal, Survey
from teho.units import counted

__all__ = [
    "SignalRange",
    "has_used_gpus",
    "hidden_of",
    "is_to_come",
    "lacking_signals",
    "names_of",
    "signal_ranges",
    "survey_verdict",
]


class SignalRange(NamedTuple):
    """The present values of one metric in several devices."""

    metric: str
    low: float
    high: float
    devices: tuple[str, ...]
    """Devices that report the metric."""


def survey_verdict(survey: Survey) -> tuple[VerdictSeverity, str]:
    """Return the severity and the most important sentence."""
    used = [device for vendor in survey.gpus for device in vendor.devices]
    failed = [vendor.why for vendor in survey.gpus if vendor.state == "failed"]
    hidden = sum(len(hidden_of(vendor)) for vendor in survey.gpus)
    where = "part of this job" if survey.job_id else "visible here"
    if not used:
        why = "; ".join(vendor.why for vendor in survey.gpus)
        if failed:
            return "critical", f"No GPU can be read: {why}."
        if hidden:
            return "warning", f"No GPU is {where}: {why}."
        return "remark", f"No GPU here: {why}."
    counts = Counter(device.name for device in used)
    models = [f"{count} {name}" if len(counts) > 1 else name for name, count in counts.items()]
    who = "this job has" if survey.job_id else "a program here can use"
    parts = [f"{who} {counted(len(used), 'GPU')} ({' and '.join(models)})"]
    if hidden:
        which = "which is" if hidden == 1 else "which are"
        parts.append(f"the node has {counted(hidden, 'more GPU')}, {which} not {where}")
    signals = [vendor.signals[device.id] for vendor in survey.gpus for device in vendor.devices]
    activity = [one["gpu_sm_active_percent"] for one in signals]
    parts.append(_had("SM activity", activity))
    energy = [_energy(vendor, one) for vendor in survey.gpus for one in vendor.devices]
    powers = [one["gpu_power_w"] for one in signals]
    if not any(map(_lacks, energy)):
        parts.append("energy is read from a counter")
    elif all(map(_lacks, energy)) and not any(map(_lacks, powers)):
        parts.append("energy is not read from a counter, but computed from power")
    else:
        parts.append(_had("energy", energy))
    failed += [sentence for vendor in survey.gpus for sentence in _silent(vendor)]
    is_good = not any(map(_lacks, (*activity, *energy)))
    # A lost GPU is more important than the signals of the others.
    sentence = ". ".join(map(capital, [*parts[:1], *failed, *parts[1:]])) + "."
    return ("critical" if failed else "good" if is_good else "warning"), sentence


def has_used_gpus(survey: Survey) -> bool:
    """Return whether a program started here would use a GPU."""
    return any(vendor.devices for vendor in survey.gpus)


def hidden_of(vendor: Answers) -> list[Device]:
    """Return the GPUs of this machine that a program started here cannot use."""
    parents = {device.parent_id for device in vendor.devices}
    return [device for device in vendor.others if device.id not in parents]


def names_of(vendor: Answers) -> dict[str, str]:
    """Return a short name of each device: its index; for a MIG instance, behind its GPU's index."""
    index = {device.id: device.index for device in (*vendor.devices, *vendor.others)}
    return {
        device.id: f"{index.get(device.parent_id, '?')}:{device.index}"
        if device.parent_id
        else str(device.index)
        for device in (*vendor.devices, *vendor.others)
    }


def signal_ranges(signals: Mapping[str, Mapping[str, Signal]]) -> Iterator[SignalRange]:
    """Yield the range of each metric that at least one device reports."""
    for name in next(iter(signals.values())):
        had = {
            device: value
            for device, values in signals.items()
            if not isinstance(value := values[name], Missing)
        }
        if had:
            yield SignalRange(name, min(had.values()), max(had.values()), tuple(had))


def lacking_signals(
    signals: Mapping[str, Mapping[str, Signal]],
) -> dict[tuple[Missing, tuple[str, ...]], list[str]]:
    """Return the missing metrics, by reason and devices."""
    lacking: dict[tuple[Missing, tuple[str, ...]], list[str]] = {}
    for name in next(iter(signals.values())):
        reasons: dict[Missing, list[str]] = {}
        for device, values in signals.items():
            if isinstance(value := values[name], Missing):
                reasons.setdefault(value, []).append(device)
        for missing, devices in reasons.items():
            lacking.setdefault((missing, tuple(devices)), []).append(name)
    return lacking


def is_to_come(signal: Signal) -> bool:
    """Return whether a signal exists, but had no value yet."""
    return isinstance(signal, Missing) and signal.reason is Reason.UNRECORDED


def _silent(vendor: Answers) -> Iterator[str]:
    """Yield a sentence for each GPU without any readable signal, if there is a single reason."""
    names = names_of(vendor)
    for device in vendor.devices:
        # A lost GPU still reports errors.
        found = {
            signal
            for metric, signal in vendor.signals[device.id].items()
            if metric != "gpu_xid_errors"
        }
        (why, *others) = found
        if not others and isinstance(why, Missing) and why.reason is Reason.FAILED:
            yield f"GPU {names[device.id]} cannot be read: {why.detail}"


def _had(what: str, signals: Sequence[Signal]) -> str:
    lacking = sum(map(_lacks, signals))
    if lacking == len(signals):
        return f"{what} is not available"
    if lacking:
        return f"{what} is available on {len(signals) - lacking} of {len(signals)} GPUs"
    return f"{what} is {'not measured yet' if any(map(is_to_come, signals)) else 'available'}"


def _lacks(signal: Signal) -> bool:
    return isinstance(signal, Missing) and not is_to_come(signal)


def _energy(vendor: Answers, device: Device) -> Signal:
    """Return the counter of a device's energy: its own, or another die's of its package."""
    counter = vendor.signals[device.id]["gpu_energy_j"]
    package = [
        vendor.signals[other.id]["gpu_energy_j"]
        for other in vendor.devices
        if other.package_id == device.package_id is not None
    ]
    return min((counter, *package), key=_lacks)
