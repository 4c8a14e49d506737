"""Every module imports alone, and no modules import each other in a circle."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import teho
from drawn import draw
from support import SOAK

PACKAGE = Path(teho.__file__).parent
SERVER = """\
import gc, json, os, sys, traceback
# Loaded once, for all: none of them imports teho.
import click, jinja2, msgspec, pyarrow.parquet, pynvml, rich.console, rich.table

gc.disable()  # it would copy the pages of what is loaded
for name in json.load(sys.stdin):
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        try:
            __import__(name)
        except BaseException as error:
            if name.startswith("teho.feed.") and getattr(error, "name", "") == "torch":
                os._exit(0)  # its tests run in a Python that has PyTorch
            os.write(write_end, traceback.format_exc().encode()[-4000:])
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        if text := answer.read():
            print(name, text)
    os.wait()
"""


def modules(package: Path) -> dict[str, Path]:
    """Return the modules of a package; folders without `__init__.py` are programs of their own."""
    found = {package.name: package / "__init__.py"}
    for path in sorted(package.rglob("*.py")):
        folders = [folder for folder in path.parents if package in (folder, *folder.parents)]
        if all((folder / "__init__.py").is_file() for folder in folders):
            parts = path.relative_to(package.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield what runs when a module is imported."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from statements(statement.orelse)
            continue
        yield statement
        for part in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from statements(handler.body)


def imported_by(source: str, known: Mapping[str, object]) -> set[str]:
    """Return which known modules are imported when the module with this source is."""
    names: set[str] = set()
    for statement in statements(ast.parse(source).body):
        if isinstance(statement, ast.Import):
            names.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, "relative imports are not used"
            for alias in statement.names:
                module = f"{statement.module}.{alias.name}"
                names.add(module if module in known else str(statement.module))
    return names & known.keys()


def with_packages(name: str, imports: set[str]) -> set[str]:
    """Add the packages that Python imports before a module in them.

    A module's own packages are left out: they are imported before it.
    """
    packages = {
        ".".join(parts[:length])
        for parts in (one.split(".") for one in imports)
        for length in range(1, len(parts))
    }
    return imports | {one for one in packages if one != name and not name.startswith(f"{one}.")}


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the modules that are left if those without imports are removed again and again."""
    left = {name: set(imports) for name, imports in graph.items()}
    while done := {name for name, imports in left.items() if not imports}:
        left = {name: imports - done for name, imports in left.items() if name not in done}
    paths = []
    while left:
        path = [min(left)]
        while (following := min(left[path[-1]])) not in path:
            path.append(following)
        circle = path[path.index(following) :]
        paths.append(circle)
        # Look for the others without the imports of this one.
        left = {name: imports - set(circle) for name, imports in left.items()}
        while done := {name for name, imports in left.items() if not imports}:
            left = {name: imports - done for name, imports in left.items() if name not in done}
    return paths


@pytest.mark.soak
def test_every_module_imports_by_itself() -> None:
    names = sorted(set(modules(PACKAGE)) - {"teho.__main__"})
    assert len(names) > 400
    if not SOAK:
        names = sorted(draw(names, len(names) // 5, (), os.environ["TEHO_DRAW"]))
    count = len(os.sched_getaffinity(0))
    servers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SERVER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(count)
    ]  # fmt: skip
    for first, server in enumerate(servers):
        assert server.stdin
        server.stdin.write(json.dumps(names[first::count]))
        server.stdin.close()
    for server in servers:
        with server:
            assert server.stdout
            assert server.stdout.read() == ""
        assert server.returncode == 0


def test_no_modules_import_each_other_in_a_circle() -> None:
    known = modules(PACKAGE)
    graph = {
        name: with_packages(name, imported_by(path.read_text(), known) - {name})
        for name, path in known.items()
    }
    assert sum(map(len, graph.values())) > 1500, "the imports are found"
    assert circles(graph) == []


def test_circles_are_found() -> None:
    sources = {
        "p": "",
        "p.a": "from p.b import x",
        "p.b": "import p.c",
        "p.c": "try:\n    from p import a\nexcept ImportError:\n    pass",
        "p.d": "from p import a\ndef later():\n    import p.e",
        "p.e": "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    import p.d\nimport p.f",
        "p.f": "class F:\n    import p.e",
    }
    graph = {name: imported_by(source, sources) for name, source in sources.items()}
    assert circles(graph) == [["p.a", "p.b", "p.c"], ["p.e", "p.f"]]


def test_circles_through_a_package_are_found() -> None:
    sources = {
        "p": "",
        "p.a": "from p.a.b import x",  # as packages do that offer names of their modules
        "p.a.b": "",
        "p.a.c": "",
        "p.d": "from p import e",
        "p.e": "from p.f.g import x",
        "p.f": "import p.d",
        "p.f.g": "",
    }
    graph = {
        name: with_packages(name, imported_by(source, sources)) for name, source in sources.items()
    }
    assert circles(graph) == [["p.d", "p.e", "p.f"]]
