"""What all tests share: a home of their own, and `teho` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import nvml_stub
import pytest
from hypothesis import settings

from drawn import drawn_items, name_of_draw
from preloaded import Preloaded
from support import FRAMEWORKS, SOAK, TEHO, lacks_framework

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

# A shell that started us in the background has told us, and thereby all that we start, to ignore
# Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# PyTorch's threads wait in a loop, which takes the cores from the tests beside this one.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Shared machines stall; a slow example is not a wrong one.
settings.register_profile("teho", deadline=None, max_examples=100 if SOAK else 40)
settings.load_profile("teho")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test its own recordings, settings and cache, and no job around it."""
    directory = tmp_path / "teho home"  # the space is on purpose
    monkeypatch.setenv("TEHO_HOME", str(directory))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in list(os.environ):
        if name.startswith(("SLURM_", "SGE_", "TEHO_STUB")) or name.endswith("_VISIBLE_DEVICES"):
            monkeypatch.delenv(name)
    for name in (
        "TEHO_EVERY", "TEHO_REPORT", "TEHO_THRESHOLDS", "TEHO_ELECTRICITY", "TEHO_SHARED",
        "NO_COLOR", "COLUMNS", "LINES", "JOB_ID",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return directory


def pytest_configure() -> None:
    """Name the draw of this run, for its workers too."""
    os.environ.setdefault("TEHO_DRAW", name_of_draw())


def pytest_report_header() -> str:
    if SOAK:
        return "cases: all (TEHO_SOAK=1)"
    return f"cases: a part of those with the mark drawn, by TEHO_DRAW={os.environ['TEHO_DRAW']}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that are not drawn."""
    if not SOAK:
        items[:], left_out = drawn_items(items, os.environ["TEHO_DRAW"])
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist, all files run in their order
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Give each worker its next file by what it needs most: time or a core."""
    if config.getvalue("dist") != "loadfile":
        return None
    from files_of_workers import FilesOfWorkers

    return FilesOfWorkers(config, log)


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    with closing(Preloaded()) as one:
        yield one


@pytest.fixture
def teho(preloaded: Preloaded) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `teho` with arguments and return what it printed."""

    def call(
        *arguments: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        words, environment = [*map(str, arguments)], {**os.environ, **(env or {})}
        server = preloaded.of_libraries(environment)
        if server.can_run(words, environment):
            return server.run(words, environment, str(cwd or Path.cwd()), stdin)
        return subprocess.run(
            [*TEHO, *words],
            env=environment,
            input=stdin,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


@pytest.fixture(scope="session")
def torch_python() -> Path:
    """Return a Python that has PyTorch; skip, and say why, where there is none."""
    if reason := lacks_framework("torch"):
        pytest.skip(reason)
    return FRAMEWORKS / "bin" / "python"


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the stand-in for `libnvidia-ml.so.1`; skip if nothing compiles it."""
    try:
        return nvml_stub.build(tmp_path_factory.mktemp("nvml"))
    except nvml_stub.NoCompilerError as error:
        pytest.skip(str(error))
