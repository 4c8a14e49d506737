"""What all tests share: a home of their own, and `teho` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import nvml_stub
import pytest
from hypothesis import settings

from support import FRAMEWORKS, TEHO, lacks_framework

# A shell that started us in the background has told us, and thereby all that we start, to ignore
# Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# Shared machines stall; a slow example is not a wrong one.
settings.register_profile("teho", deadline=None, max_examples=100)
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
        "TEHO_EVERY", "TEHO_REPORT", "TEHO_THRESHOLDS", "TEHO_ELECTRICITY", "NO_COLOR", "COLUMNS",
        "JOB_ID",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return directory


@pytest.fixture(scope="session")
def stub_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a driver's library that plays a scenario instead of a GPU."""
    try:
        return nvml_stub.build(tmp_path_factory.mktemp("nvml"))
    except nvml_stub.NoCompilerError as error:
        pytest.skip(str(error))


_LONG = (
    "test_launchers.py",
    "test_kills.py",
    "test_launchers_grid_engine.py",
    "test_recorded_steps.py",
    "test_submit_twins.py",
    "test_tune.py",
    "test_benchmarks.py",
    "test_compare.py",
    "test_scale.py",
    "test_imposed.py",
    "test_probe_torch.py",
    "test_bench_images.py",
    "test_slurm_differential.py",
    "test_env_modules.py",
    "test_env_wheelhouse.py",
    "test_whole_jobs.py",
)
"""Files that take a minute or more: begun last, they would leave workers idle at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest; all others keep their order."""
    places = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: places.get(item.path.name, len(_LONG)))


@pytest.fixture
def teho() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `teho` with arguments and return what it printed."""

    def call(
        *arguments: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*TEHO, *map(str, arguments)],
            env={**os.environ, **(env or {})},
            input=stdin,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return call


@pytest.fixture(scope="session")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stand-in for NVIDIA's library; skip if there is no C compiler."""
    try:
        return nvml_stub.build(tmp_path_factory.mktemp("nvml"))
    except nvml_stub.NoCompilerError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def torch_python() -> Path:
    """Return a Python that has PyTorch; skip, and say why, where there is none."""
    if reason := lacks_framework("torch"):
        pytest.skip(reason)
    return FRAMEWORKS / "bin" / "python"
