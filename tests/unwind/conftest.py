from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from unwind.programs import Program, start


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Start programs that end with the test."""
    started: list[Program] = []

    @functools.wraps(start)
    def begin(code: str, **options: Any) -> Program:
        started.append(start(code, options.pop("folder", tmp_path), **options))
        return started[-1]

    try:
        yield begin
    finally:
        for one in started:
            one.end()
