"""What a machine has and can tell, for a terminal: the page that a user sends to support."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.text import Text

from teho.model.device import Device
from teho.model.document import Cell, Column, Table
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason
from teho.model.survey import Answers, Signal, Survey
from teho.show.cells import BUSY_MEANS, MARKS, plain, quantity
from teho.show.text.flow import dotted, flow, printed, sentence, words
from teho.show.text.table import table_lines
from teho.units import format_bytes

__all__ = ["render_devices"]

_SCHEDULERS = {"slurm": "Slurm", "grid_engine": "Grid Engine", "local": "local"}
_STYLES = {"critical": "bold red", "warning": "bold yellow", "remark": "bold cyan"}
_INDENT = Text("  ")
_COLUMNS = (
    Column(key="gpu", label="GPU"),
    Column(key="name", label="Model"),
    Column(key="memory", label="Memory", unit="bytes"),
    Column(key="numa", label="NUMA"),
    Column(key="pci", label="PCI"),
    Column(key="limit", label="Limit", unit="W"),
    Column(key="architecture", label="Arch"),
    Column(key="used", label="Used"),
    Column(key="id", label="Id"),
)


def render_devices(survey: Survey, *, width: int, color: bool) -> str:
    """Render a survey for people; ends in a line break.

    What matters comes first, devices and signals follow, versions and notes are at the end.
    """
    return printed((block for block in _blocks(survey, width) if block), width=width, color=color)


def _blocks(survey: Survey, width: int) -> Iterator[list[Text]]:
    yield _head(survey, width)
    for vendor in survey.gpus:
        yield _devices(vendor, width)
    for vendor in survey.gpus:
        names = _names(vendor)
        for model in dict.fromkeys(device.name for device in vendor.devices):
            alike = [device for device in vendor.devices if device.name == model]
            signals = {names[device.id]: vendor.signals[device.id] for device in alike}
            yield _signals(f"Signals of {_gpus(signals)}", signals, width)
    if survey.node.signals:
        yield _signals("Signals of the node", survey.node.signals, width)
    yield _versions(survey, width)
    notes = [note for answers in (*survey.gpus, survey.node) for note in answers.notes]
    yield _listed("Notes", notes, width)


def _head(survey: Survey, width: int) -> list[Text]:
    severity, text = _verdict(survey)
    lines = flow(words(text), width, Text(f"{MARKS[severity]} "), style="bold")
    lines[0].stylize(_STYLES.get(severity, "bold green"), 0, 1)
    hushed = _used(survey) or any(vendor.state == "failed" for vendor in survey.gpus)
    for vendor in survey.gpus:
        if vendor.next_step and (vendor.state == "failed" or not hushed):
            lines += flow(sentence(vendor.next_step, vendor.of.upper()), width, Text("  → "))
    facts = [("Host", survey.host)]
    if survey.job_id:
        facts.append(("Job", f"{_SCHEDULERS.get(survey.scheduler or '', '')} {survey.job_id}"))
    of_all = f" (of {survey.core_count_node})" if survey.core_count_node else ""
    facts.append(("Cores", f"{len(survey.cores)}{of_all}"))
    if survey.memory_node_bytes:
        facts.append(("Memory", format_bytes(survey.memory_node_bytes)))
    facts.append(("CPU", survey.cpu_model))
    facts += survey.visible.items()
    return [*lines, *flow(dotted(_labelled(facts)), width, _INDENT)]


def _labelled(facts: Iterable[tuple[str, str]]) -> list[Text]:
    return [
        Text.assemble((f"{plain(label)} ", "dim"), plain(text)) for label, text in facts if text
    ]


def _used(survey: Survey) -> list[Device]:
    return [device for vendor in survey.gpus for device in vendor.devices]


def _hidden(vendor: Answers) -> list[Device]:
    """Return the GPUs that are here and of no use to a program started here."""
    parents = {device.parent_id for device in vendor.devices}
    return [device for device in vendor.others if device.id not in parents]


def _verdict(survey: Survey) -> tuple[str, str]:
    """Return how it stands, and the one sentence that matters first."""
    used = _used(survey)
    failed = [vendor.why for vendor in survey.gpus if vendor.state == "failed"]
    hidden = sum(len(_hidden(vendor)) for vendor in survey.gpus)
    whose = "this job's" if survey.job_id else "visible here"
    if not used:
        why = "; ".join(vendor.why for vendor in survey.gpus)
        if failed:
            return "critical", f"No GPU can be read: {why}."
        return ("warning", f"No GPU is {whose}: {why}.") if hidden else (
            "remark", f"No GPU here: {why}."
        )  # fmt: skip
    counts = Counter(device.name for device in used)
    parts = [" and ".join(f"{count} {name}" for name, count in counts.items())]
    if hidden:
        parts.append(f"{hidden} more {'is' if hidden == 1 else 'are'} not {whose}")
    signals = [vendor.signals[device.id] for vendor in survey.gpus for device in vendor.devices]
    activity = [one["gpu_sm_active_percent"] for one in signals]
    parts.append(_had("SM activity", activity))
    energy = [_energy(vendor, one) for vendor in survey.gpus for one in vendor.devices]
    powers = [one["gpu_power_w"] for one in signals]
    if not any(map(_lacks, energy)):
        parts.append("energy by counter")
    elif all(map(_lacks, energy)) and not any(map(_lacks, powers)):
        parts.append("energy only from power")
    else:
        parts.append(_had("energy", energy))
    failed += [words for vendor in survey.gpus for words in _silent(vendor)]
    good = not any(map(_lacks, (*activity, *energy)))
    severity = "critical" if failed else "good" if good else "warning"
    # A GPU that is lost matters more than what the others tell.
    return severity, "; ".join([*parts[:1], *failed, *parts[1:]]) + "."


def _silent(vendor: Answers) -> Iterator[str]:
    """Name the GPUs of which nothing can be read, for one reason."""
    names = _names(vendor)
    for device in vendor.devices:
        # Errors are reported of a GPU that is lost as well.
        told = {
            signal
            for metric, signal in vendor.signals[device.id].items()
            if metric != "gpu_xid_errors"
        }
        (why, *others) = told
        if not others and isinstance(why, Missing) and why.reason is Reason.FAILED:
            yield f"nothing can be read of GPU {names[device.id]}: {why.detail}"


def _had(what: str, signals: Sequence[Signal]) -> str:
    lacking = sum(map(_lacks, signals))
    if lacking == len(signals):
        return f"{what} cannot be had"
    if lacking:
        return f"{what} of {len(signals) - lacking} of {len(signals)}"
    return f"{what} {'is still to come' if any(map(_is_to_come, signals)) else 'can be had'}"


def _is_to_come(signal: Signal) -> bool:
    return isinstance(signal, Missing) and signal.reason is Reason.UNRECORDED


def _lacks(signal: Signal) -> bool:
    return isinstance(signal, Missing) and not _is_to_come(signal)


def _energy(vendor: Answers, device: Device) -> Signal:
    """Return what counts its energy: its own counter, or that of another die of its package."""
    own = vendor.signals[device.id]["gpu_energy_j"]
    package = [
        vendor.signals[other.id]["gpu_energy_j"]
        for other in vendor.devices
        if other.package_id == device.package_id is not None
    ]
    return min((own, *package), key=_lacks)


def _names(vendor: Answers) -> dict[str, str]:
    """Return what each device is called on this page: its index, behind its GPU's for MIG."""
    index = {device.id: device.index for device in (*vendor.devices, *vendor.others)}
    return {
        device.id: f"{index.get(device.parent_id, '?')}:{device.index}"
        if device.parent_id
        else str(device.index)
        for device in (*vendor.devices, *vendor.others)
    }


def _devices(vendor: Answers, width: int) -> list[Text]:
    names, hidden = _names(vendor), _hidden(vendor)
    rows: list[dict[str, Cell]] = [
        {
            "gpu": names[device.id],
            "name": device.name.removeprefix(f"{vendor.of.upper()} "),
            "memory": device.memory_bytes,
            "numa": device.numa_node,
            "pci": device.pci_bus_id,
            "limit": device.power_limit_w,
            "architecture": device.architecture or None,
            "used": "no" if device in hidden else "yes",
            "id": device.id,
        }
        for device in (*vendor.devices, *hidden)
    ]
    if not rows:
        return []
    count = len(rows)
    title = f"{count} {vendor.of.upper()} {'GPU' if count == 1 else 'GPUs'}"
    lines = table_lines(Table(key="gpus", title=title, columns=_COLUMNS, rows=tuple(rows)), width)
    said = []
    if any(device.parent_id for device in vendor.devices):
        said.append("0:1 is the second MIG instance of GPU 0.")
    if hidden and vendor.devices:
        said.append("A program started here does not use those that say no.")
    for text in said:
        lines += flow(words(text), width, _INDENT, style="dim", hang=4)
    return lines


def _gpus(names: Collection[str]) -> str:
    """Name some GPUs: `GPU 3`, `GPUs 0, 2`, `GPUs 0 to 7`."""
    listed = list(names)
    first = int(listed[0]) if listed[0].isdecimal() else 0
    if len(listed) > 2 and listed == [str(first + place) for place in range(len(listed))]:
        return f"GPUs {listed[0]} to {listed[-1]}"
    return f"GPU{'' if len(names) == 1 else 's'} {', '.join(listed)}"


def _signals(title: str, signals: Mapping[str, Mapping[str, Signal]], width: int) -> list[Text]:
    """List what can be had with its present value, then what cannot with the reason.

    If that is so of some of the devices alone, their names stand behind it.
    """
    had: dict[str, list[str]] = {}
    lacking: dict[tuple[Missing, str], list[str]] = {}
    for name in next(iter(signals.values())):
        reasons: dict[Missing, list[str]] = {}
        for device, values in signals.items():
            value = values[name]
            if isinstance(value, Missing):
                reasons.setdefault(value, []).append(device)
            else:
                had.setdefault(name, []).append(device)
        for missing, devices in reasons.items():
            of = f" ({_gpus(devices)})" if len(devices) < len(signals) else ""
            lacking.setdefault((missing, of), []).append(METRICS_BY_NAME[name].label)
    lines = [Text(title, "bold"), *_values(had, signals)]
    if "gpu_busy_percent" in had:
        lines += flow(words(BUSY_MEANS), width, _INDENT, style="dim", hang=4)
    for heading, to_come in (("  Still to come", True), ("  Cannot be had", False)):
        entries = [entry for entry in lacking.items() if _is_to_come(entry[0][0]) is to_come]
        lines += [Text(heading)] if entries else []
        for (missing, of), labels in entries:
            said = [] if to_come else [str(missing)]
            why = ": ".join(filter(None, (*said, missing.detail)))
            lines += flow(sentence(", ".join(labels) + of, why), width, Text("    "), hang=6)
    return lines


def _values(
    had: Mapping[str, list[str]], signals: Mapping[str, Mapping[str, Signal]]
) -> Iterator[Text]:
    column = max((cell_len(METRICS_BY_NAME[name].label) for name in had), default=0)
    for name, devices in had.items():
        metric = METRICS_BY_NAME[name]
        line = Text("  ").append(metric.label.ljust(column), "dim").append("  ")
        line.append(_range([signals[device][name] for device in devices], metric.unit))
        line.append(" in all" if metric.kind == "counter" else "", "dim")
        line.append(f" ({_gpus(devices)})" if len(devices) < len(signals) else "", "dim")
        yield line


def _range(values: Iterable[Signal], unit: str) -> str:
    numbers = sorted(value for value in values if not isinstance(value, Missing))
    low, high = quantity(numbers[0], unit), quantity(numbers[-1], unit)
    return low if low == high else f"{low} to {high}"


def _versions(survey: Survey, width: int) -> list[Text]:
    facts = [fact for vendor in survey.gpus for fact in vendor.versions.items()]
    facts += survey.system.items()
    return [
        Text("Versions", "bold"),
        *flow(dotted(_labelled(facts)), width, _INDENT),
    ]


def _listed(title: str, notes: Sequence[str], width: int) -> list[Text]:
    lines = [
        line for note in notes for line in flow(words(note), width, _INDENT, style="dim", hang=4)
    ]
    return [Text(title, "dim"), *lines] if lines else []
