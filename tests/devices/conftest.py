"""Sources keep files open; a test's sources are closed with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from nvml_bench import Bench

from teho.devices.amd.source import AmdSource
from teho.devices.host.source import HostSource


@pytest.fixture(autouse=True)
def closed_sources(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened: list[AmdSource | HostSource] = []
    for kind in (AmdSource, HostSource):

        def opening(source, *args, _made=kind.__init__, **options) -> None:
            opened.append(source)
            _made(source, *args, **options)

        monkeypatch.setattr(kind, "__init__", opening)
    yield
    for source in opened:
        if hasattr(source, "devices"):  # it came to be
            source.close()


@pytest.fixture
def bench(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = Bench(nvml_library, tmp_path, monkeypatch)
    yield bench
    for source in bench.sources:
        source.close()
