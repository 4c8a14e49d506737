"""The length of the files, and the names of the classes, of `src/teho`."""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "teho"
sys.path.append(str(ROOT / "benchmarks"))

from count_code import code_lines  # noqa: E402 - the path above leads to it

MOST_LINES = 400
GROWTH = 1.1
"""How much longer an exception may become before it must be split."""
# File -> its lines when it became an exception, and why it is one file.
LONG = {
    "cli/run.py": (495, "the options of one command and the order of its steps"),
    "show/build/profile.py": (492, "the tables of one document, which share their columns"),
    "explain/activities.py": (475, "reads one table and finds its entries in stacks"),
    "observe/recorder.py": (461, "one process: its loop and what each turn does"),
    "source/inputs.py": (459, "one analysis; its functions call each other"),
    "explain/context.py": (443, "one class: what a rule can ask about a run"),
    "explain/program_context.py": (439, "one class: what a rule can ask about a program"),
    "probe/inject/_teho_probe/profiling.py": (
        419, "loaded in the user's program, where each file costs time"
    ),
    "probe/inject/_teho_probe/of_torch.py": (
        417, "loaded in the user's program, where each file costs time"
    ),
    "store/read.py": (416, "reads every version of one format"),
    "store/index_file.py": (416, "one database: its tables and their queries"),
}  # fmt: skip
# (package, class) -> why two modules of the package have a class with this name.
SAME_NAME = {
    ("devices", "Traffic"): "counters in both directions, and the PCIe traffic of one GPU",
    ("explain", "GpuUse"): "how much a GPU was used: in a run, beside a process, in a recording",
    ("model", "Change"): "a change of a request, and a change of the program",
    ("model", "MemoryUse"): "the memory of tensors in a trace, and the highest memory of a run",
    ("model", "Problem"): "what is wrong with a copied file, and with an environment",
    ("model", "Share"): "the part of a kernel's time, and the part of a node for one GPU",
    ("model", "Step"): "a training step of a trace, and the scheduler's job step",
    ("model", "Totals"): "sums over runs, and the numbers in a document about a cluster",
    ("show", "Row"): "a row of the live screen and of the portal's list",
    ("source", "Value"): "how a value differs between iterations, and the value of an option",
}


def test_a_file_has_at_most_400_lines() -> None:
    lengths = {
        str(path.relative_to(SOURCES)): len(path.read_text(encoding="utf-8").splitlines())
        for path in SOURCES.rglob("*.py")
    }
    long = {name: length for name, length in lengths.items() if length > MOST_LINES}
    assert {name: length for name, length in long.items() if name not in LONG} == {}
    assert [name for name in LONG if name not in long] == [], "no exceptions any more"
    grown = {name: long[name] for name, (then, _) in LONG.items() if long[name] > GROWTH * then}
    assert grown == {}


def test_a_name_of_a_class_is_unique_in_its_package() -> None:
    """Names with an underscore are of one module, and may be used again."""
    modules: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        place = path.relative_to(SOURCES)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[place.parts[0], node.name].append(str(place))
    twice = {key: places for key, places in modules.items() if len(places) > 1}
    assert {key: places for key, places in twice.items() if key not in SAME_NAME} == {}
    assert [key for key in SAME_NAME if key not in twice] == [], "no exceptions any more"


def test_what_is_counted_as_code() -> None:
    text = '"""A docstring.\n\nMore.\n"""\n\n# A comment.\nx = 1  # one\ny = """a\n\nb"""\n\n'
    assert code_lines(text) == 4
    assert code_lines("") == 0
    body = 'def f():\n    """Say."""\n    return (\n        1,\n        # two\n    )\n'
    assert code_lines(body) == 4
    assert Counter(text)["\n"] == 11
