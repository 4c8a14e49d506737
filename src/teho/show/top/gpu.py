"""A GPU: curves of the last minutes, its processes, and all its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from teho.model.live import GpuNow
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing
from teho.show.cells import plain, quantity
from teho.show.live_text import device_facts, p_state_text
from teho.show.text.flow import flow, words
from teho.show.top.braille import braille
from teho.show.top.frame import CURVES, Curve, Frame
from teho.show.top.orders import PROCESS_ORDERS
from teho.show.top.processes import gpu_process_rows
from teho.show.top.rows import DIM, Row, View, age
from teho.units import format_bytes

__all__ = ["gpu_view"]

_LABEL = 17
"""Width of the labels of curves."""


def gpu_view(
    frame: Frame, name: str, position: int, curves: Sequence[Curve], width: int, height: int
) -> View:
    """Return the curves of a GPU, its processes, and all its values.

    Args:
        frame: what is shown.
        name: of its node.
        position: its number among the job's GPUs on the node.
        curves: its metrics over the last minutes.
        width: columns of the terminal.
        height: lines below the title.
    """
    node = frame.node(name)
    if node is None or position >= len(node.gpus):
        cell = Row(Text("The run has no such GPU."))
        return View(Text(f"GPU {position} of {name}"), [cell]).cut(width)
    gpu = node.gpus[position]
    title = Text(f"GPU {position} of {plain(name)}", "bold")
    title.append(f"  {plain(gpu.device.name)}  {age(node)}", DIM)
    rows: list[Row] = []
    by_metric = {curve.metric: curve for curve in curves}
    for metric, top in CURVES.items():
        curve = by_metric.get(metric)
        if curve is not None and any(value is not None for value in curve.values):
            rows += _curve_rows(curve, gpu, top, width, 3 if height >= 24 else 2)
    using = [one for one in node.processes if gpu.device.id in one.gpu_memory_bytes]
    if using:
        using = PROCESS_ORDERS["gpu_memory"].sorted(using)
        rows += [Row(Text()), *gpu_process_rows(gpu, using, frame.owner)]
    rows += [Row(Text()), *_value_rows(gpu, width)]
    return View(title, rows).cut(width)


def _value_rows(gpu: GpuNow, width: int) -> Iterable[Row]:
    """Yield the state and the facts of a GPU, its metrics, and why others are missing."""
    missing: dict[Missing, list[str]] = {}
    for label, fact in {"P-state": p_state_text(gpu.p_state), **device_facts(gpu.device)}.items():
        if isinstance(fact, Missing):
            missing.setdefault(fact, []).append(label)
        else:
            yield Row(Text(f"{label:<32}{plain(fact)}"))
    for kind, why in gpu.unlisted.items():
        missing.setdefault(why, []).append(f"processes of the type {kind}")
    for metric, value in gpu.values.items():
        about = METRICS_BY_NAME[metric]
        label = f"{about.label[:1].upper()}{about.label[1:]}"
        if metric == "gpu_energy_j":
            continue  # per second, it is the power
        if isinstance(value, Missing):
            missing.setdefault(value, []).append(label)
            continue
        text = Text(f"{label:<32}")
        text.append(quantity(value, about.shown_unit))
        if metric == "gpu_power_w" and gpu.device.power_limit_w:
            text.append(f" of {gpu.device.power_limit_w:.0f} W")
        if metric == "gpu_memory_used_bytes" and gpu.device.memory_bytes:
            text.append(f" of {format_bytes(gpu.device.memory_bytes)}")
        yield Row(text, f"metric {metric}")
    for why, labels in missing.items():
        lead = Text(f"{why}{': ' if why.detail else ''}{plain(why.detail)}: ", DIM)
        sentence = flow(words(", ".join(labels)), width, lead, hang=2)
        yield from (Row(Text()), *map(Row, sentence))


def _curve_rows(
    curve: Curve, gpu: GpuNow, top: float | None, width: int, height: int
) -> Iterable[Row]:
    values = [value for value in curve.values if value is not None]
    limit = {
        "gpu_memory_used_bytes": gpu.device.memory_bytes,
        "gpu_power_w": gpu.device.power_limit_w,
    }.get(curve.metric)
    high = top or limit or max(values)
    metric = METRICS_BY_NAME[curve.metric]
    room = max(10, width - _LABEL)
    lines = braille(curve.values, room, height, 0.0, float(high))
    label = f"{metric.label[:1].upper()}{metric.label[1:]}"
    for number, line in enumerate(lines):
        cell = (
            label[: _LABEL - 1] if number == 0
            else quantity(values[-1], metric.unit) if number == 1
            else ""
        )  # fmt: skip
        text = Text(f"{cell:<{_LABEL}}", "" if number else "bold")
        text.append(line, "color(30)")
        yield Row(text)
