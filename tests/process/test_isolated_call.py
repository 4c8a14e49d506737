"""A call in a process of its own: its answer, its errors, and one that hangs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from support import is_gone, wait_for
from teho.process.isolated_call import IsolatedCall, NoAnswer, answering, executing


def here(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


def test_an_answer_comes_back_as_it_was_given() -> None:
    assert IsolatedCall("it", answering(lambda: {"a": [1, 2]}), 30).answer(
        dict[str, list[int]]
    ) == {"a": [1, 2]}
    echo = IsolatedCall("echo", executing(["echo", "[1]"], here()), 30)
    assert echo.answer(list[int]) == [1]


def test_what_goes_wrong_there_is_reported_here() -> None:
    def fail() -> None:
        raise ValueError("of its own")

    missing = IsolatedCall("it", answering(fail), 30).answer(int)
    assert missing == NoAnswer("asking it failed: ValueError('of its own')")
    none = IsolatedCall("it", executing(["no-such-command"], here()), 30).answer(int)
    assert none == NoAnswer("no command no-such-command here")
    crash = IsolatedCall("it", answering(lambda: os.kill(os.getpid(), signal.SIGKILL)), 30).answer(
        int
    )
    assert isinstance(crash, NoAnswer)
    assert crash.why.endswith("was ended by SIGKILL")
    odd = IsolatedCall("it", executing(["echo", "words"], here()), 30).answer(int)
    assert isinstance(odd, NoAnswer)
    assert "Teho does not understand" in odd.why


def test_who_hangs_is_given_up_with_all_that_it_started(tmp_path: Path) -> None:
    script = tmp_path / "hangs"
    script.write_text(f"#!/bin/sh\nsleep 1000 & echo $! > '{tmp_path}/pid'\nwait\n")
    script.chmod(0o755)
    call = IsolatedCall("it", executing([str(script)], here()), 0.5)
    missing = call.answer(int)
    assert missing == NoAnswer("it did not answer within 0.5 s")
    wait_for((tmp_path / "pid").exists)
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: is_gone(pid))
