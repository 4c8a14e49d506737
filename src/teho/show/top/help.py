"""The help of `teho top`: its keys, and what each value means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from teho.model.metric import METRICS, METRICS_BY_NAME
from teho.show.text.flow import flow
from teho.show.top.rows import Row, View, uncoloured

__all__ = ["TERMS", "help_view"]

TERMS = {
    "cpu_busy_percent": "Cores busy",
    "cpu_iowait_percent": "I/O wait",
    "job_memory_bytes": "Memory",
    "gpu_busy_percent": "GPU busy (utilisation)",
    "gpu_sm_active_percent": "SM activity",
    "gpu_sm_occupancy_percent": "Occupancy (SM occupancy)",
    "gpu_tensor_percent": "Tensor activity",
    "gpu_memory_used_bytes": "GPU memory used",
    "gpu_thermal_throttle_percent": "Throttling",
    "gpu_power_throttle_percent": "Throttling",
    "gpu_ecc_corrected": "ECC",
    "gpu_ecc_uncorrected": "ECC",
    "gpu_xid_errors": "Xid error",
}
"""Metric -> its name in the glossary, if this is not its label."""

_KEYS = (
    ("↑ ↓, j k", "Move."),
    ("Home, End", "Move to the first or the last line."),
    ("Enter, →", "Open the selected node, GPU or process."),
    ("Esc, ←", "Go back."),
    ("s", "Sort the nodes, or the processes of a node, by another value."),
    (
        "/",
        "Type a text: only nodes or processes with this text in their name or command are shown.",
    ),
    ("f", "Stop updating the values; press f again to continue."),
    ("q", "Quit. The run continues."),
)
_CELLS = (
    (
        "0 to 9",
        (
            "How busy a GPU is, or a core on nodes without GPUs, in steps of 10 %: 3 means "
            "30 % to 39 %, 9 means 90 % or more. The colour shows the same share."
        ),
    ),
    ("· or –", "This value cannot be read; open the GPU or the node to see why."),
    ("GPU MEM", "Highest share of used memory among the node's GPUs."),
    (
        "POWER",
        (
            "Sum of the power of all GPUs of the node. In an opened node, `with 0` means that "
            "GPU 0 reports the power of both GPUs of their card."
        ),
    ),
    (
        "SLOWED BY",
        (
            "Whether heat or the power cap reduces the GPU's clocks, and in which share of the "
            "samples. If both do, the larger share is shown."
        ),
    ),
    ("ECC", "Uncorrected memory errors of the GPU since the recording began."),
    (
        "! after a node's name",
        (
            "Heat slows a GPU of this node, or a GPU had an uncorrected memory error or an Xid "
            "error since the recording began."
        ),
    ),
    ("CORES", "Share of the job's cores that are busy. Other programs are included."),
    ("MEMORY, MEM %", "Memory that the job uses on this node, and its share of the memory limit."),
    (
        "P",
        (
            "P-state of the GPU: the driver's performance state. P0 is the fastest state, P8 and "
            "higher numbers are states of idle GPUs."
        ),
    ),
    (
        "TYPE",
        (
            "How a process uses a GPU: C computes, G draws graphics, M computes through NVIDIA's "
            "Multi-Process Service (MPS)."
        ),
    ),
    (
        "USER",
        (
            "User who owns the process. The screen looks up the name; recordings have no names of "
            "users."
        ),
    ),
    (
        "Compute mode",
        (
            "Which processes may compute on the GPU: all (default), one at a time (exclusive "
            "process), or none (prohibited)."
        ),
    ),
    (
        "CUDA version, ROCm version",
        (
            "The newest CUDA version that the driver of an NVIDIA GPU supports, or the version of "
            "ROCm on a node with AMD GPUs."
        ),
    ),
    (
        "AGE",
        (
            "Time since the node's newest sample; “now” means less than 2.5 s. After the end of "
            "the run, “at end” means that the values are from the end."
        ),
    ),
    (
        "by connection, from files",
        (
            "How the values come: over a connection of the recorder, from files that the "
            "recorder replaces, or from the rows of the recording."
        ),
    ),
)
_LABEL = 29
"""Width of the column with the keys and the names."""


def help_view(
    width: int, topics: Sequence[str] = (), facts: Iterable[tuple[str, str]] = ()
) -> View:
    """Return the lines of the help.

    Args:
        width: columns of the terminal.
        topics: metrics whose help is first: those of the selected row or column.
        facts: labels and values of the run, of which the head may have no room for all.
    """
    rows: list[Row] = []
    selected = [(_name(topic), METRICS_BY_NAME[topic].meaning) for topic in topics]
    values = [(_label(metric.name), metric.meaning) for metric in METRICS]
    for title, texts in (
        ("Selected", _sentences(selected)),
        ("Keys", _sentences(_KEYS)),
        ("This run", list(facts)),
        ("Cells", _sentences(_CELLS)),
        ("Values", _sentences(values)),
    ):
        if texts:
            rows += [Row(Text(title, "bold")), *_entries(texts, width), Row(Text())]
    return View(Text("Help", "bold"), rows).cut(width)


def _sentences(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(key, f"{text[:1].upper()}{text[1:].rstrip('.')}.") for key, text in texts]


def _entries(texts: Iterable[tuple[str, str]], width: int) -> Iterable[Row]:
    is_wide = width >= 2 * _LABEL
    for key, text in texts:
        lead = Text(f"{key:<{_LABEL}}" if is_wide else f"{key}: ")
        if is_wide and len(key) >= _LABEL:  # a long name is on a line of its own
            yield Row(lead)
            lead = Text(" " * _LABEL)
        yield from map(Row, flow(uncoloured(text), width, lead, hang=_LABEL if is_wide else 2))


def _label(metric: str) -> str:
    label = METRICS_BY_NAME[metric].label
    return label[:1].upper() + label[1:]


def _name(metric: str) -> str:
    """Return the name in the glossary, with the label if this says more."""
    term, label = TERMS.get(metric, ""), _label(metric)
    if not term or term == label:
        return label
    short, long = term.lower(), label.lower()
    return term if long in short or short in long else f"{term}: {label}"
