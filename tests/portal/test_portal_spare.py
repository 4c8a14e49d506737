"""The process that has loaded Teho's modules before a page is asked for."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import msgspec
import pytest
from portal_process import portal

from support import TEHO, is_gone, wait_for
from teho.process.isolated_call import NoAnswer
from teho.show.html.page import PageParts
from teho.show.portal.computed import Computed
from teho.show.portal.spare import Spare

pytest.importorskip("starlette", reason="teho[portal] is not installed")
pytest.importorskip("uvicorn", reason="teho[portal] is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
VERDICT = "GPU 3 on g1 was never used."


def waiting(parent: int) -> list[int]:
    """Return the processes of a portal that wait for a question."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().split(b"\0")
            ppid = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if ppid == parent and command[-3:-1] == [b"portal-page", b"wait"]:
            found.append(int(path.name))
    return found


def waits(parent: int) -> list[int]:
    """Wait until such a process has started, and return it."""
    wait_for(lambda: waiting(parent))
    return waiting(parent)


def plain(page: str) -> str:
    return page.replace("\N{NO-BREAK SPACE}", " ")


def test_it_answers_one_question_and_ends() -> None:
    spare = Spare(TEHO, 60.0)
    (pid,) = waits(os.getpid())
    assert spare.is_fresh
    call = spare.ask("report", [EXAMPLE])
    assert call is not None
    answer = call.output()
    assert not isinstance(answer, NoAnswer)
    assert VERDICT in plain(msgspec.json.decode(answer, type=PageParts).header)
    assert is_gone(pid)


def test_a_report_is_kept_until_new_rows_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New rows are added to a file, which changes no folder."""
    (tmp_path / "run.json").touch()
    rows = tmp_path / "live" / "g1.0000.arrows"
    rows.parent.mkdir()
    rows.touch()
    asked: list[str] = []
    computed = Computed(TEHO)
    monkeypatch.setattr(computed, "_answer_to", lambda kind, _: asked.append(kind) or b"{}")
    for _ in range(2):
        computed.json(tmp_path)
    assert asked == ["json"]
    written_ns = rows.stat().st_mtime_ns
    os.utime(rows, ns=(written_ns, written_ns + 1_000_000_000))
    for _ in range(2):
        computed.json(tmp_path)
    assert asked == ["json", "json"]


def test_without_a_question_it_ends() -> None:
    spare = Spare(TEHO, 60.0)
    (pid,) = waits(os.getpid())
    spare.end()
    assert is_gone(pid)


def test_a_page_is_computed_also_if_it_has_died() -> None:
    computed = Computed(TEHO)
    computed.prepare()
    (pid,) = waits(os.getpid())
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    assert VERDICT in plain(computed.report(EXAMPLE).header)
    assert is_gone(pid)
    computed.close()


def test_each_report_has_its_own_process(tmp_path: Path) -> None:
    runs = tmp_path / "home/runs"
    for letter in "ab":
        shutil.copytree(EXAMPLE, runs / f"20261123-094500-one-{letter * 4}")
    with portal(tmp_path) as one:
        parent = one.process.pid
        (first,) = waits(parent)
        assert VERDICT in one.ask(f"/run?id={next(runs.glob('*aaaa')).name}").text
        assert is_gone(first)
        assert waiting(parent) == []
        # The next one waits because the user looks at the list.
        assert one.ask("/runs").status == 200
        (second,) = waits(parent)
        assert one.ask("/runs").status == 200
        assert waiting(parent) == [second], "one is enough"
        assert VERDICT in one.ask(f"/run?id={next(runs.glob('*bbbb')).name}").text
        assert one.ask("/").status == 200
        (third,) = waits(parent)
    wait_for(lambda: is_gone(third))
