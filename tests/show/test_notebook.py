"""`%%teho` in a real kernel of Jupyter and in a real IPython."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import teho
from teho.model.run import RunState

BUSY = """\
import time
def busy(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(10000))
"""


@pytest.fixture(autouse=True)
def jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))


def run(*cells: str, fails: bool = False) -> list[nbformat.NotebookNode]:
    """Run cells in a new kernel, after `%load_ext teho`; return them with their outputs."""
    sources = ["%load_ext teho", BUSY, *cells]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in sources])
    client = NotebookClient(notebook, timeout=300, kernel_name="python3")
    if fails:
        with pytest.raises(CellExecutionError):
            client.execute()
    else:
        client.execute()
    return list(notebook.cells[2:])


def plain(cell: nbformat.NotebookNode) -> str:
    """Return all text of a cell's outputs."""
    texts = []
    for output in cell.outputs:
        if output.output_type == "stream":
            texts.append(output.text)
        elif output.output_type == "error":
            texts.append("\n".join(output.traceback))
        else:
            texts.append(output.data["text/plain"])
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(texts))


def test_a_cell_is_recorded_like_a_run() -> None:
    (cell,) = run("%%teho --name busy\nbusy(2)\nprint('said')\nx = 5\nx + 1")
    assert [output.output_type for output in cell.outputs] == [
        "stream", "execute_result", "display_data",
    ]  # fmt: skip
    assert cell.outputs[1].data["text/plain"] == "6"
    report = cell.outputs[2].data
    assert "srcdoc=" in report["text/html"]
    assert "cell-3" in report["text/plain"]
    loaded = teho.load("busy")
    end = loaded.run.end
    assert loaded.state is RunState.FINISHED
    assert loaded.run.command == ("cell-3", "busy(2)")
    assert loaded.run.troubles == ()
    assert end is not None
    assert end.exit_code == 0
    assert 2 <= end.elapsed_s < 60
    assert end.cpu_s is not None
    assert 0.2 < end.cpu_s <= end.elapsed_s + 1
    (node,) = loaded.run.nodes
    assert node.sealed
    rows = loaded.table("node").to_pylist()
    assert max(row["job_processes"] for row in rows if row["job_processes"] is not None) == 1
    assert abs(rows[-1]["job_cpu_s"] - end.cpu_s) < 1  # it is the total so far


def test_what_was_used_before_the_cell_does_not_count() -> None:
    run(
        "while time.process_time() < 2: busy(0.1)\nopen('/dev/null', 'w').write('x' * 50_000_000)",
        "%%teho --name idle\ntime.sleep(3)",
    )
    end = teho.load("idle").run.end
    assert end is not None
    assert end.cpu_s is not None
    assert end.cpu_s < 1
    rows = teho.load("idle").table("node").to_pylist()
    assert rows[-1]["job_cpu_s"] < 1
    assert rows[-1]["job_write_calls_bytes"] < 1_000_000


def test_processes_that_the_cell_starts_count() -> None:
    program = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', TEXT])"
    run("TEXT = 'import time; time.sleep(3)'", f"%%teho --name outside\n{program}")
    loaded = teho.load("outside")
    rows = loaded.table("node").to_pylist()
    assert max(row["job_processes"] for row in rows if row["job_processes"] is not None) == 2


def test_an_exception_is_shown_as_usual_and_the_recording_is_kept() -> None:
    cell = run("%%teho --name broken\ny = 1\nbusy(1)\n1 / 0\nz = 1", fails=True)[0]
    assert cell.outputs[-1].output_type == "error"
    assert (cell.outputs[-1].ename, cell.outputs[-1].evalue) == (
        "ZeroDivisionError", "division by zero",
    )  # fmt: skip
    text = plain(cell)
    assert "----> 4 1 / 0" in text or "----> 3 1 / 0" in text
    assert "notebook.py" not in text
    end = teho.load("broken").run.end
    assert end is not None
    assert end.exit_code == 1


def test_short_is_one_sentence() -> None:
    (cell,) = run("%%teho --short\nbusy(1)")
    (output,) = cell.outputs
    assert output.data["text/plain"].count("\n") <= 1
    assert output.data["text/html"].startswith("<pre>")


def test_a_syntax_error_and_a_wrong_option_are_shown_as_usual() -> None:
    assert "SyntaxError" in plain(run("%%teho\nif\n", fails=True)[0])
    wrong = {
        "--nam x": "%%teho: unrecognized arguments: --nam x; expected [--name NAME] [--short]",
        "--name": "%%teho: argument --name: expected one argument",
        "--name 'x": "No closing quotation",
        "--name last": "use another name",
    }
    *cells, after = run(
        *(
            f"try:\n  get_ipython().run_cell_magic('teho', {line!r}, 'w = 1')\n"
            "except Exception as e: print(type(e).__name__, e)"
            for line in wrong
        ),
        "'w' in dir()",
    )
    for cell, words in zip(cells, wrong.values(), strict=True):
        assert plain(cell).startswith("UsageError")
        assert words in plain(cell)
    assert plain(after) == "False"


def test_a_home_that_cannot_be_written_costs_only_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TEHO_HOME", str(tmp_path / "file" / "x"))
    (cell, after) = run("%%teho\nv = 7", "v")
    assert plain(cell).startswith("teho: the cell is not recorded: ")
    assert plain(after) == "7"


def test_magics_and_commands_of_the_shell_work_inside() -> None:
    (cell, after) = run("%%teho --short\n!echo from the shell\nlines = !echo one\n%pwd", "lines")
    assert "from the shell" in plain(cell)
    assert plain(after) == "['one']"


def test_a_terminal_gets_text(tmp_path: Path) -> None:
    script = tmp_path / "cells.ipy"
    script.write_text(
        "get_ipython().run_cell('%load_ext teho')\n"
        "get_ipython().run_cell('%%teho --name term\\nq = 3\\nq')\n"
    )
    said = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", script],
        capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    assert "<iframe" not in said.stdout
    assert "cell-" in said.stdout
    assert all(len(line) <= 80 for line in said.stdout.splitlines())
    assert teho.load("term").run.end is not None


def test_importing_teho_does_not_import_ipython() -> None:
    text = "import sys, teho, teho.show.notebook; print('IPython' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert said.stdout == "False\n"


def test_a_killed_kernel_leaves_a_recording(home: Path) -> None:
    text = (
        "import os, time\n"
        "from teho.config.settings import load_settings\n"
        "from teho.observe.from_inside import RecordedProcess\n"
        "from teho.observe.wanted import Wanted\n"
        "recorded = RecordedProcess(Wanted(load_settings(), ('In[1]',), 'killed', {}, 0.2))\n"
        "print(recorded.directory, recorded._recorder.pid, flush=True)\n"
        "time.sleep(3)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    said = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert said.returncode == -9, said.stderr
    pid = said.stdout.split()[-1]
    until_s = time.monotonic() + 60
    while Path("/proc", pid).exists():
        assert time.monotonic() < until_s
        time.sleep(0.1)
    loaded = teho.load("killed")
    assert loaded.state is RunState.INTERRUPTED
    assert loaded.table("node").num_rows > 0
    assert loaded.run.nodes[0].sealed


def test_an_interrupt_ends_the_cell_and_not_the_recording() -> None:
    cell = run(
        "%%teho --name stopped\nimport os, signal, threading\n"
        "threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()\ntime.sleep(60)",
        fails=True,
    )[0]
    assert cell.outputs[-1].ename == "KeyboardInterrupt"
    loaded = teho.load("stopped")
    assert loaded.run.end is not None
    assert (loaded.run.end.exit_code, loaded.run.end.signal) == (None, 2)
    assert loaded.run.end.elapsed_s < 50
    assert loaded.run.nodes[0].sealed
