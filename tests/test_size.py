"""The length of the files, and the names of classes, variables and tests."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
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


# Parts of names that say nothing in the field, such as `told_group`; see docs/glossary.md.
PRIVATE = frozenset((
    "anew", "apart", "contest", "guest", "looked", "looks", "nobody", "scene", "seat", "sight",
    "tell", "tells", "told", "unasked", "whoever", "whose",
))  # fmt: skip
# Name -> why it stays.
NAMED_OUTSIDE = {"shell_is_told": "templates of sites use it (docs/scripts.md)"}
IN_TESTS = re.compile(
    r"_(?:anew|apart|goes_on|go_on|looked|nobody|said|speaks?|stands?|stood|tells?|told|whoever)"
    r"(?:_|$)"
)


@functools.lru_cache(maxsize=1)
def trees() -> dict[Path, ast.Module]:
    """Return the parsed files of Teho."""
    return {
        path.relative_to(SOURCES): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCES.rglob("*.py"))
    }


def given_names(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield each name that a file gives, and whether it is of a function or a class."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, True
        elif isinstance(node, ast.arg):
            yield node.arg, False
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, False
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, False


def is_private(name: str, *, is_definition: bool) -> bool:
    """Return whether a name is a word of our own; a function `of`, as in `rows.of(gpu)`, is not."""
    if name == "of":
        return not is_definition
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    return not PRIVATE.isdisjoint(parts) and name not in NAMED_OUTSIDE


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
    for place, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[place.parts[0], node.name].append(str(place))
    twice = {key: places for key, places in modules.items() if len(places) > 1}
    assert {key: places for key, places in twice.items() if key not in SAME_NAME} == {}
    assert [key for key in SAME_NAME if key not in twice] == [], "no exceptions any more"


def test_names_are_words_of_the_field() -> None:
    found = {
        f"{place}: {name}"
        for place, tree in trees().items()
        for name, is_definition in given_names(tree)
        if is_private(name, is_definition=is_definition)
    }
    assert found == set()
    assert is_private("of", is_definition=False)
    assert is_private("_ToldGroup", is_definition=True)
    assert not is_private("of", is_definition=True)
    assert not is_private("seats_of_apartment", is_definition=False)


def test_names_of_tests_are_words_of_the_field() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
        if IN_TESTS.search(name)
    }
    assert found == set()
    assert IN_TESTS.search("test_the_end_is_told")
    assert not IN_TESTS.search("test_the_standard_output")


def test_what_is_counted_as_code() -> None:
    text = '"""A docstring.\n\nMore.\n"""\n\n# A comment.\nx = 1  # one\ny = """a\n\nb"""\n\n'
    assert code_lines(text) == 4
    assert code_lines("") == 0
    body = 'def f():\n    """Say."""\n    return (\n        1,\n        # two\n    )\n'
    assert code_lines(body) == 4
    assert Counter(text)["\n"] == 11
