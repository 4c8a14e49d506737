"""Run the tests of other projects alone and under `teho run`: no outcome may change.

python benchmarks/harm.py                                  all suites, some 20 minutes
python benchmarks/harm.py --only cpython,joblib
python benchmarks/harm.py --torch CHECKOUT                 also the data loader's tests of PyTorch
python benchmarks/harm.py --write docs/harm.md

Each suite runs alone twice, and then under `teho run`. A test whose two outcomes differ when it
runs alone is unstable, and is left out. If a test has another outcome under Teho, its part of the
suite runs twice more each way, so that chance does not count as harm.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import CACHE, SCRIPTS, environment, machine, say

_PYTHON_MODULES = (
    "test_signal", "test_threadsignals", "test_subprocess", "test_fork1", "test_popen",
    "test_threading", "test_thread", "test_threading_local", "test_queue", "test_sched",
    "test_multiprocessing_fork", "test_multiprocessing_spawn", "test_multiprocessing_forkserver",
    "test_concurrent_futures", "test_asyncio", "test_import", "test_importlib", "test_pkgutil",
    "test_zipimport", "test_runpy", "test_site", "test_cmd_line", "test_sys", "test_sysconfig",
    "test_sys_settrace", "test_sys_setprofile", "test_bdb", "test_pdb", "test_trace",
    "test_cprofile", "test_tracemalloc", "test_faulthandler", "test_atexit", "test_gc",
    "test_weakref", "test_inspect", "test_frame", "test_warnings", "test_io", "test_os",
    "test_posix", "test_resource", "test_audit", "test_code", "test_linecache",
)  # fmt: skip
_PACKAGES = ("joblib==1.5.2", "multiprocess==0.70.18", "pytest==8.4.2", "dill==0.4.0")
_TIMEOUT_S = 1800


@dataclass(frozen=True)
class Part:
    """A part of a suite that runs in one process."""

    name: str
    argv: tuple[str, ...]
    """Arguments of Python; `{xml}` is the file for the outcomes."""
    folder: Path | None = None


@dataclass(frozen=True)
class Counted:
    """The outcomes of a suite."""

    suite: str
    tests: int
    unstable: int
    changed: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run tests of other projects under Teho.")
    parser.add_argument("--only", help="names of suites, with commas")
    parser.add_argument("--torch", type=Path, help="a checkout of PyTorch, with its tests")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of the docs")
    options = parser.parse_args(arguments)
    python = _python()
    suites = {
        "cpython": list(_of_cpython()),
        "joblib": [_of_pytest("joblib", _package(python, "joblib") / "test")],
        "multiprocess": [
            Part(
                "multiprocess", ("-m", "pytest", "-q", "--junit-xml={xml}", "--pyargs",
                                 "multiprocess.tests", "-p", "no:cacheprovider")
            )
        ],
        "pytest": [_of_pytest("pytest", _sources_of_pytest(python) / "testing")],
    }  # fmt: skip
    if options.torch:
        suites["torch"] = [_of_pytest("torch", options.torch / "test" / "test_dataloader.py")]
    chosen = options.only.split(",") if options.only else list(suites)
    counted = [_count(name, suites[name], python) for name in chosen]
    page = _page(counted)
    say(page)
    if options.write:
        options.write.write_text(page, encoding="utf-8")
    return 1 if any(one.changed for one in counted) else 0


def _of_cpython() -> Iterator[Part]:
    for module in _PYTHON_MODULES:
        yield Part(module, ("-m", "test", "-q", "--junit-xml", "{xml}", module))


def _of_pytest(name: str, place: Path) -> Part:
    argv = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml={xml}", str(place))
    return Part(name, argv, place if place.is_dir() else place.parent)


def _python() -> Path:
    """Return the Python of an environment with the packages whose tests run."""
    place = CACHE / "harm"
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", *_PACKAGES, "numpy", "attrs", "hypothesis"],
            check=True,
        )
    return python


def _package(python: Path, name: str) -> Path:
    code = f"import {name}; print({name}.__path__[0])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def _sources_of_pytest(python: Path) -> Path:
    """Return the unpacked sources of pytest: its wheel has no tests."""
    place = CACHE / "harm-sources"
    if not place.exists():
        (requirement,) = (one for one in _PACKAGES if one.startswith("pytest"))
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:",
                 "--no-build-isolation", "-d", folder, requirement, "setuptools-scm"],
                check=False,
            )  # fmt: skip
            (archive,) = Path(folder).glob("pytest-*.tar.gz")
            with tarfile.open(archive) as file:
                file.extractall(place, filter="data")
    (found,) = place.glob("pytest-*")
    return found


def _count(suite: str, parts: Sequence[Part], python: Path) -> Counted:
    tests, unstable, changed = 0, 0, []
    for part in parts:
        alone = [_outcomes(part, python) for _ in range(2)]
        under = _outcomes(part, python, under_teho=True)
        stable = {
            name: outcome for name, outcome in alone[0].items() if alone[1].get(name) == outcome
        }
        tests += len(stable)
        unstable += len(alone[0].keys() | alone[1].keys()) - len(stable)
        odd = [name for name, outcome in stable.items() if under.get(name) != outcome]
        if odd:
            odd = _again(part, python, stable, odd)
        changed += [f"{part.name}: {name}: {stable[name]}" for name in odd]
        say(f"  {suite} {part.name}: {len(stable)} tests, {len(odd)} changed")
    return Counted(suite, tests, unstable, tuple(changed))


def _again(part: Part, python: Path, stable: dict[str, str], odd: Sequence[str]) -> list[str]:
    """Return the tests that differ each time under Teho and never alone."""
    under = [_outcomes(part, python, under_teho=True) for _ in range(2)]
    alone = [_outcomes(part, python) for _ in range(2)]
    return [
        name
        for name in odd
        if all(one.get(name) != stable[name] for one in under)
        and all(one.get(name) == stable[name] for one in alone)
    ]


def _outcomes(part: Part, python: Path, *, under_teho: bool = False) -> dict[str, str]:
    """Return the outcome of each test: passed, failed, error or skipped."""
    with tempfile.TemporaryDirectory(prefix="teho-harm-") as folder:
        xml = Path(folder) / "outcomes.xml"
        argv = [str(python), *(one.format(xml=xml) for one in part.argv)]
        if under_teho:
            argv = [str(SCRIPTS / "teho"), "run", "--report", "none", "--", *argv]
        home = Path(folder) / "home"
        home.mkdir()
        try:
            subprocess.run(
                argv,
                cwd=folder,
                env=environment(home),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {}
        return dict(_read(xml)) if xml.exists() else {}


def _read(xml: Path) -> Iterator[tuple[str, str]]:
    for case in ET.parse(xml).iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        yield name, kinds.pop() if kinds else "passed"


def _page(counted: Sequence[Counted]) -> str:
    lines = [
        "# No test changes its outcome",
        "",
        "`benchmarks/harm.py` runs the tests of other projects alone and under `teho run`, and",
        "compares the outcome of each test. A test whose outcome differs between two runs without",
        f"Teho is unstable, and is not counted. Measured on: {machine()}.",
        "",
        "| Suite | Tests | Unstable | Changed under `teho run` |",
        "|---|---:|---:|---:|",
        *(
            f"| {one.suite} | {one.tests:,} | {one.unstable} | {len(one.changed)} |"
            for one in counted
        ),
        "",
        *(f"- {name}" for one in counted for name in one.changed),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
