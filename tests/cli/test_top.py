"""`teho top` as a user calls it, also in a real terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nvml_stub
import pytest
from nvml_stub import Scenario

from recorded_program import recorded, rows_of
from support import TEHO, wait_for
from terminal import keys, screen, terminal

Teho = Callable[..., subprocess.CompletedProcess[str]]
STEADY = Scenario(("gpus 2", "processes 0 parent", "0 * 50 1000 400", "0 1 50 1000 250"))


def test_once_prints_the_nodes_of_the_run_that_is_running(teho: Teho, home: Path) -> None:
    with recorded(home, "--name", "watched"):
        shown = teho("top")
        assert shown.returncode == 0, shown.stderr
        assert "Nodes now" in shown.stdout
        assert "still running" in shown.stdout
        once = teho("top", "watched", "--once")
        assert once.returncode == 0
        assert "Some values are from the rows" not in once.stdout  # it waited for a newer sample
    leases = [path for run in home.glob("runs/*") for path in (run / "leases").iterdir()]
    assert leases == []


def test_json_is_one_document_per_line_until_the_run_ends(home: Path, tmp_path: Path) -> None:
    try:
        library = nvml_stub.build(tmp_path)
    except nvml_stub.NoCompilerError as reason:
        pytest.skip(str(reason))
    gpus = nvml_stub.environment(library, STEADY.write(tmp_path / "scenario.txt"))
    with recorded(home, environment=gpus):
        top = subprocess.Popen(
            [*TEHO, "top", "--format", "json"], stdout=subprocess.PIPE, text=True
        )
        assert top.stdout is not None
        documents = []
        while len(documents) < 30:
            documents.append(json.loads(top.stdout.readline()))
            is_new = rows_of(documents[-1], "nodes_now")[0]["age"] < 2
            is_live = rows_of(documents[-1], "gpus_now")[0]["p_state"] == "P0"
            if len(documents) > 1 and is_new and is_live:
                break
    last = documents[-1]
    assert last["state"] == "running"
    gpu = rows_of(last, "gpus_now")
    assert [(row["gpu"], row["busy"], row["power"]) for row in gpu] == [
        (0, 50.0, 400.0), (1, 50.0, 250.0)
    ]  # fmt: skip
    for row in gpu:
        facts = [row[key] for key in ("driver", "platform", "compute_mode", "p_state")]
        assert facts == ["550.54.15", "CUDA 12.4", "default", "P0"]
    sleeps = [row for row in rows_of(last, "processes_now") if row["command"] == "sleep 120"]
    assert [row["user"] for row in sleeps] == [pwd.getpwuid(os.geteuid()).pw_name]
    # The run has ended: the last document says so, and the command ends.
    rest = top.communicate(timeout=60)[0].splitlines()
    assert json.loads(rest[-1])["state"] == "finished"
    assert top.returncode == 0


def test_if_no_run_is_running_the_error_says_what_to_do(teho: Teho) -> None:
    teho("run", "-q", "--", "true")
    shown = teho("top")
    assert shown.returncode == 2
    assert shown.stderr == (
        "teho: no run is running. Next: `teho top last --replay` replays the last run\n"
    )
    # A run that is named is shown as it was at its end.
    assert teho("top", "last").returncode == 0


def test_if_several_runs_are_running_the_user_has_to_choose(teho: Teho, home: Path) -> None:
    with recorded(home, "--name", "one"), recorded(home, "--name", "two"):
        shown = teho("top")
        assert shown.returncode == 2
        assert "2 runs are running: " in shown.stderr
        assert "(one)" in shown.stderr
        assert "(two)" in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonexistent"], "nonexistent"),
        (["--speed", "10"], "--speed 10 works only with --replay"),
        (["--replay", "--once"], "--replay cannot be used together with --once"),
        (["last", "--replay"], "--replay needs a terminal for input and output"),
        (["--replay", "--speed", "0"], "0"),
    ],
)
def test_a_mistake_is_one_line(teho: Teho, arguments: list[str], message: str) -> None:
    teho("run", "-q", "--", "true")
    shown = teho("top", *arguments)
    assert shown.returncode == 2
    assert message in shown.stderr
    assert shown.stderr.count("\n") == 1
    assert "Traceback" not in shown.stderr


def test_a_run_is_watched_in_a_terminal(home: Path) -> None:
    top = " ".join([*TEHO, "top"])
    with recorded(home), terminal(top, 100, 30) as tmux:
        wait_for(lambda: "NODE" in screen(tmux))
        assert f"▶ {os.uname().nodename}" in screen(tmux)
        keys(tmux, "Enter")
        wait_for(lambda: f"node {os.uname().nodename}" in screen(tmux))
        wait_for(lambda: "sleep 120" in screen(tmux))  # the list of processes
        keys(tmux, "Enter")
        wait_for(lambda: "of one core" in screen(tmux))
        keys(tmux, "?")
        wait_for(lambda: "Open the selected node, GPU or process." in screen(tmux))
        keys(tmux, "Escape")
        wait_for(lambda: "of one core" in screen(tmux))
        keys(tmux, "q")
        wait_for(lambda: "of one core" not in screen(tmux))
        (run,) = home.glob("runs/[!.]*")
        wait_for(lambda: not list((run / "leases").iterdir()))


def test_an_opened_process_shows_the_line_in_which_it_is(home: Path, tmp_path: Path) -> None:
    program = tmp_path / "waits.py"
    program.write_text(
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire(timeout=120)\n"
    )
    top = " ".join([*TEHO, "top"])
    with recorded(home, program=[sys.executable, str(program)]), terminal(top, 100, 30) as tmux:
        wait_for(lambda: f"▶ {os.uname().nodename}" in screen(tmux))
        keys(tmux, "Enter")
        wait_for(lambda: "waits.py" in screen(tmux))  # the list of processes
        keys(tmux, "End", "Enter")
        wait_for(lambda: "Line now    waits.py:4  lock.acquire(timeout=120)" in screen(tmux))
        # The next samples say that the thread is still there.
        pattern = r"\n +waiting for a lock, in this line for \d+\.\d s"
        wait_for(lambda: re.search(pattern, screen(tmux)))


def test_two_viewers_watch_a_run_at_the_same_time(home: Path) -> None:
    command = [*TEHO, "top", "--format", "json"]
    with recorded(home), terminal(" ".join([*TEHO, "top"]), 100, 30) as tmux:
        (run,) = home.glob("runs/[!.]*")
        wait_for(lambda: "values by connection" in screen(tmux))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
            assert top.stdout is not None
            for line in top.stdout:  # the first frames may have the rows of the recording
                if rows_of(json.loads(line), "nodes_now")[0]["way"] == "connection":
                    break
            assert len(list((run / "leases").iterdir())) == 2
            assert "values by connection" in screen(tmux)
            top.terminate()
        wait_for(lambda: len(list((run / "leases").iterdir())) == 1)
        keys(tmux, "Enter")
        wait_for(lambda: "sleep 120" in screen(tmux))
        assert "values by connection" in screen(tmux)
        keys(tmux, "q")
        wait_for(lambda: not list((run / "leases").iterdir()))


def test_one_of_several_runs_is_chosen_in_a_terminal(home: Path) -> None:
    with (
        recorded(home, "--name", "one"),
        recorded(home, "--name", "two"),
        terminal(" ".join([*TEHO, "top"]), 100, 30) as tmux,
    ):
        wait_for(lambda: "Which run" in screen(tmux))
        asked = screen(tmux)
        assert "(one)" in asked
        number = next(line.split()[0] for line in asked.splitlines() if line.endswith("(two)"))
        keys(tmux, number, "Enter")
        wait_for(lambda: "NODE" in screen(tmux))
        (two,) = [
            run for run in home.glob("runs/[!.]*")
            if json.loads((run / "run.json").read_bytes())["name"] == "two"
        ]  # fmt: skip
        wait_for(lambda: list((two / "leases").iterdir()))
        keys(tmux, "q")


@pytest.mark.parametrize("has_colour", [True, False])
def test_without_colour_the_screen_has_no_colour(home: Path, has_colour: bool) -> None:
    setting = ["env", "-u", "NO_COLOR"] if has_colour else ["env", "NO_COLOR=1"]
    command = " ".join([*setting, *TEHO, "top"])
    with recorded(home), terminal(command, 100, 30) as tmux:
        wait_for(lambda: "CORES, ×10 %" in screen(tmux))
        coded = subprocess.run(
            [*tmux, "capture-pane", "-p", "-e"], capture_output=True, text=True, check=True
        ).stdout
        colours = re.findall(r"\x1b\[(?:[\d;]*;)?(?:[349][0-8]|10[0-7])[\d;]*m", coded)
        assert bool(colours) is has_colour, colours[:5]


def test_when_the_run_ends_its_last_frame_stays_with_the_verdict(home: Path) -> None:
    with contextlib.ExitStack() as run:
        run.enter_context(recorded(home))
        with terminal(" ".join([*TEHO, "top"]), 100, 30) as tmux:
            wait_for(lambda: "values by connection" in screen(tmux))
            run.close()
            wait_for(lambda: "finished" in screen(tmux))
            wait_for(lambda: "at end" in screen(tmux))
            assert "values by connection" not in screen(tmux)
            keys(tmux, "Enter")
            wait_for(lambda: "at the end of the run" in screen(tmux))
            # The processes of the last sample. The terminal draws a screen piece by piece.
            wait_for(lambda: "sleep 120" in screen(tmux))


def test_textual_is_loaded_only_for_the_screen() -> None:
    example = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
    code = (
        "import sys; sys.modules['textual'] = None\n"
        "from teho.cli import main\n"
        f"try: main(['top', {str(example)!r}, '--once'])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "GPUs at the end" in shown.stdout
    assert "Samples by" in shown.stdout


def test_a_terminal_that_cannot_move_its_cursor_gets_text(home: Path) -> None:
    with recorded(home), terminal(f"TERM=dumb {' '.join([*TEHO, 'top'])}", 100, 30) as tmux:
        wait_for(lambda: "Nodes now" in screen(tmux))


def test_a_killed_viewer_and_a_closed_terminal_do_not_harm_the_run(home: Path) -> None:
    with recorded(home):
        with terminal(" ".join(["exec", *TEHO, "top"]), 80, 24) as tmux:
            wait_for(lambda: "NODE" in screen(tmux))
            asked = [*tmux, "list-panes", "-F", "#{pane_pid}"]
            pid = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
            assert b"top" in Path(f"/proc/{pid}/cmdline").read_bytes()
        # The terminal has gone away: the viewer got SIGHUP, and has given its lease back.
        (run,) = home.glob("runs/[!.]*")
        wait_for(lambda: not list((run / "leases").iterdir()))
        wait_for(lambda: not Path(f"/proc/{pid}").exists())
        command = [*TEHO, "top", "--format", "json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as top:
            assert top.stdout is not None
            top.stdout.readline()
            top.kill()
        assert len(list((run / "leases").iterdir())) == 1
        again = subprocess.run(
            [*TEHO, "top", "--once"], capture_output=True, text=True, check=False, timeout=60
        )
        assert again.returncode == 0, again.stderr
        assert list((run / "leases").iterdir()) == []


def test_a_finished_run_is_played_in_a_terminal() -> None:
    example = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
    command = " ".join([*TEHO, "top", str(example), "--replay", "--speed", "1000"])
    with terminal(command, 90, 24) as tmux:
        wait_for(lambda: "GPU 3 on g1 was never used." in screen(tmux))
        assert "▶ g1" in screen(tmux)
