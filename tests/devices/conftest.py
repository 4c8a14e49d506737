"""Sources keep files open; a test's sources are closed with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from teho.devices.amd import AmdSource
from teho.devices.host import HostSource


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
