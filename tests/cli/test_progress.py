"""What a terminal shows while a command works."""

from __future__ import annotations

import io
import sys
import time

import pytest

from teho.cli.progress import elapsed_line, hint_if_slow


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "is_shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_the_time_passes_on_a_terminal_during_the_first_run(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, is_shown: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("teho.cli.progress._TICK_S", 0.01)
    with elapsed_line(600):
        for _ in range(500):
            if "measuring" in stream.getvalue():
                break
            time.sleep(0.01 if is_shown else 0.0)
    assert ("teho: measuring, 0 ms of at most 10 min" in stream.getvalue()) == is_shown
    if is_shown:
        assert stream.getvalue().endswith("\r\033[K"), "the line is removed at the end"


def test_a_hint_comes_only_if_the_work_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with hint_if_slow("asking…", after_s=60):
        pass
    assert terminal.getvalue() == ""
    with hint_if_slow("asking…", after_s=0.01):
        for _ in range(500):
            if terminal.getvalue():
                break
            time.sleep(0.01)
    assert terminal.getvalue() == "teho: asking…\n"
