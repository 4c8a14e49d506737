"""DCGM's sources run a thread or a process; a test's sources are closed with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from teho.devices.dcgm.client import Dcgm
from teho.model.device import Device


@pytest.fixture
def opened() -> Iterator[Callable[..., Dcgm]]:
    """Open DCGM, and close it with the test."""
    made: list[Dcgm] = []

    def open_dcgm(*devices: Device, instances: dict[str, int] | None = None, **env: str) -> Dcgm:
        made.append(Dcgm(devices, env, instances or {}))
        return made[-1]

    yield open_dcgm
    for dcgm in made:
        dcgm.close()
        dcgm.close()
