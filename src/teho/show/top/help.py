"""The help of `teho top`: its keys, and what each value means."""

from __future__ import annotations

from rich.text import Text

from teho.model.metric import METRICS
from teho.show.text.flow import flow, words
from teho.show.top.rows import Row, View

__all__ = ["help_view"]

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
    ("AGE", "Time since the node's newest sample; “now” means less than 2.5 s."),
)
_LABEL = 29
"""Width of the column with the keys and the names."""


def help_view(width: int) -> View:
    """Return the lines of the help."""
    rows: list[Row] = []
    for name, texts in (
        ("Keys", _KEYS),
        ("Cells", _CELLS),
        ("Values", [(metric.label, f"{metric.meaning}.") for metric in METRICS]),
    ):
        rows.append(Row(Text(name, "bold")))
        for key, text in texts:
            sentence = text[:1].upper() + text[1:]
            label = key[:1].upper() + key[1:] if name == "Values" else key
            lead = Text(f"{label:<{_LABEL}}" if width >= 2 * _LABEL else f"{label}: ")
            hang = _LABEL if width >= 2 * _LABEL else 2
            rows += [Row(line) for line in flow(words(sentence), width, lead, hang=hang)]
        rows.append(Row(Text()))
    return View(Text("Help", "bold"), rows).cut(width)
