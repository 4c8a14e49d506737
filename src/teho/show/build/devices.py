"""The devices and signals of a machine as a document, which a user can send to support."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from teho.explain.survey import (
    SignalRange,
    has_used_gpus,
    hidden_of,
    is_to_come,
    lacking_signals,
    names_of,
    signal_ranges,
    survey_verdict,
)
from teho.model.document import Document, Fact, Item, Listing, Table
from teho.model.metric import METRICS_BY_NAME
from teho.model.survey import Answers, Signal, Survey
from teho.schedulers.registry import scheduler_or_none
from teho.show.build.layout import column, document, listing, table
from teho.show.cells import BUSY_MEANS, quantity

__all__ = ["devices_document"]

_FIRST = frozenset(
    (
        *("gpu_busy_percent", "gpu_sm_active_percent", "gpu_tensor_percent"),
        *("gpu_memory_used_bytes", "gpu_power_w", "gpu_energy_j", "gpu_temperature_c"),
    )
)
_Signals = Mapping[str, Mapping[str, Signal]]


def devices_document(survey: Survey) -> Document:
    """Lay out a survey: devices first, then signals, then versions and notes."""
    severity, verdict = survey_verdict(survey)
    groups = list(_groups(survey))
    versions = [fact for vendor in survey.gpus for fact in vendor.versions.items()]
    versions += survey.system.items()
    return document(
        title=f"teho devices · {survey.host}",
        verdict=verdict,
        verdict_severity=severity,
        facts=tuple(_facts(survey)),
        tables=(
            *(_gpus(vendor) for vendor in survey.gpus),
            *(one for title, signals in groups for one in _signals(title, signals)),
        ),
        lists=(
            listing("next", "Next", _next(survey), "first"),
            *(_lacking(title, signals, to_come=True) for title, signals in groups),
            *(_lacking(title, signals, to_come=False) for title, signals in groups),
            listing(
                "versions",
                "Versions",
                [Item(lead=name, text=text) for name, text in versions if text],
                "why",
            ),
            listing(
                "notes",
                "Notes",
                [note for one in (*survey.gpus, survey.node) for note in one.notes],
                "why",
            ),
        ),
    )


def _next(survey: Survey) -> Iterator[Item]:
    # A vendor without GPUs is of no interest if there are GPUs that are used, or that failed.
    is_enough = has_used_gpus(survey) or any(one.state == "failed" for one in survey.gpus)
    for vendor in survey.gpus:
        if vendor.next_step and (vendor.state == "failed" or not is_enough):
            yield Item(lead=vendor.source.upper(), text=vendor.next_step)


def _facts(survey: Survey) -> Iterator[Fact]:
    yield Fact("host", "Host", survey.host)
    if survey.job_id:
        job = f"{scheduler_or_none(survey.scheduler).title} {survey.job_id}"
        yield Fact("job", "Job", job.strip())
    of_all = f"of {survey.core_count_node}" if survey.core_count_node else ""
    yield Fact("cores", "Cores", len(survey.cores), note=of_all)
    yield Fact("memory_node_bytes", "Memory", survey.memory_node_bytes, "bytes")
    yield Fact("cpu_model", "CPU", survey.cpu_model or None)
    for name, value in survey.visible.items():
        yield Fact(name, name, value)


def _gpus(vendor: Answers) -> Table:
    names, hidden = names_of(vendor), hidden_of(vendor)
    devices = (*vendor.devices, *hidden)
    brand = vendor.source.upper()
    notes = []
    if any(device.parent_id for device in vendor.devices):
        notes.append("0:1 is the second MIG instance of GPU 0.")
    if hidden and vendor.devices:
        notes.append("Programs that you start here do not use the GPUs that are marked with `no`.")
    return table(
        "gpus",
        f"{len(devices)} {brand} {'GPU' if len(devices) == 1 else 'GPUs'}",
        devices,
        column("gpu", "GPU", lambda device: names[device.id]),
        column("name", "Model", lambda device: device.name.removeprefix(f"{brand} ")),
        column("memory", "Memory", lambda device: device.memory_bytes, unit="bytes"),
        column("numa", "NUMA", lambda device: device.numa_node),
        column("pci", "PCI", lambda device: device.pci_bus_id),
        column("limit", "Limit", lambda device: device.power_limit_w, unit="W"),
        column("architecture", "Arch", lambda device: device.architecture or None),
        column("used", "Used", lambda device: "no" if device in hidden else "yes"),
        column("id", "Id", lambda device: device.id),
        note=" ".join(notes),
    )


def _groups(survey: Survey) -> Iterator[tuple[str, _Signals]]:
    """Yield the signals of each GPU model with their title, then the signals of the node."""
    for vendor in survey.gpus:
        names = names_of(vendor)
        for model in dict.fromkeys(device.name for device in vendor.devices):
            alike = [device for device in vendor.devices if device.name == model]
            signals = {names[device.id]: vendor.signals[device.id] for device in alike}
            yield _gpu_names(signals), signals
    if survey.node.signals:
        yield "the node", survey.node.signals


def _gpu_names(names: Collection[str]) -> str:
    """Name some GPUs: `GPU 3`, `GPUs 0, 2`, `GPUs 0 to 7`."""
    listed = list(names)
    first = int(listed[0]) if listed[0].isdecimal() else 0
    if len(listed) > 2 and listed == [str(first + place) for place in range(len(listed))]:
        return f"GPUs {listed[0]} to {listed[-1]}"
    return f"GPU{'' if len(names) == 1 else 's'} {', '.join(listed)}"


def _signals(title: str, signals: _Signals) -> Iterator[Table]:
    """Yield the table of the signals; the few that most users ask for come in a table before."""
    ranges = list(signal_ranges(signals))
    first = [one for one in ranges if one.metric in _FIRST]
    others = [one for one in ranges if one.metric not in _FIRST]
    if first:
        yield _signal_table("signals", f"Signals of {title}", first, signals)
    if others:
        key, more = ("more_signals", "More signals") if first else ("signals", "Signals")
        yield _signal_table(key, f"{more} of {title}", others, signals)


def _signal_table(key: str, title: str, ranges: list[SignalRange], signals: _Signals) -> Table:
    def is_partial(one: SignalRange) -> bool:
        return len(one.devices) < len(signals)

    return table(
        key,
        title,
        ranges,
        column("signal", "Signal", lambda one: METRICS_BY_NAME[one.metric].label),
        column("now", "Now", _range),
        column("of", "Only of", lambda one: _gpu_names(one.devices) if is_partial(one) else "")
        if any(map(is_partial, ranges))
        else None,
        note=BUSY_MEANS if any(one.metric == "gpu_busy_percent" for one in ranges) else "",
    )


def _range(one: SignalRange) -> str:
    metric = METRICS_BY_NAME[one.metric]
    low, high = quantity(one.low, metric.unit), quantity(one.high, metric.unit)
    total = " in all" if metric.kind == "counter" else ""
    return f"{low if low == high else f'{low} to {high}'}{total}"


def _lacking(title: str, signals: _Signals, *, to_come: bool) -> Listing:
    items = [
        Item(
            lead=", ".join(METRICS_BY_NAME[name].label for name in names)
            + (f" ({_gpu_names(devices)})" if len(devices) < len(signals) else ""),
            text=why.detail if to_come else f"{why} ({why.detail})" if why.detail else str(why),
        )
        for (why, devices), names in lacking_signals(signals).items()
        if is_to_come(why) is to_come
    ]
    what = "are not measured yet" if to_come else "cannot be measured"
    return listing("lacking", f"Values that {what}: {title}", items)
