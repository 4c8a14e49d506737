"""`teho run` from end to end: what is recorded, what is said, and what goes wrong around it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nvml_stub
import pytest

import teho as library
from support import TEHO, wait_for
from teho.store.read import read_run

BUSY = "import time; end = time.monotonic() + {}\nwhile time.monotonic() < end: pass"


def under(nvml_library: Path, scenario: str) -> dict[str, str]:
    return nvml_stub.environment(nvml_library, nvml_stub.SCENARIOS / scenario)


def test_eight_gpus_in_all_four_formats(teho, nvml_library: Path, tmp_path: Path) -> None:
    scenario = nvml_stub.Scenario.load("h100x8_one_idle")
    example = Path(__file__).parents[1] / "examples" / "train_digits.py"
    ran = teho(
        "run", "--every", "200ms", "--name", "eight", "--", sys.executable, example,
        "--epochs", "1", "--seconds", "5", env=under(nvml_library, "h100x8_one_idle.txt"),
    )  # fmt: skip
    assert ran.returncode == 0
    assert "test accuracy" in ran.stdout
    assert "GPU 5" in ran.stderr.splitlines()[0]
    assert "never used" in ran.stderr.splitlines()[0]

    text = teho("report", "eight").stdout
    assert "GPU 5" in text.splitlines()[0]

    report = json.loads(teho("report", "eight", "--format", "json").stdout)
    assert report["verdict_severity"] == "critical"
    assert report["findings"][0]["kind"] == "gpu_never_used"
    (table,) = [table for table in report["tables"] if table["key"] == "gpus"]
    elapsed_s = next(f["value"] for f in report["facts"] if f["key"] == "elapsed_s")
    for gpu, row in enumerate(table["rows"]):
        step = scenario.at(gpu, 1.0)
        assert row["load_mean"] == pytest.approx(step.busy_percent)
        assert row["memory_max"] == pytest.approx(step.used_mib * 2**20)
        # The recorder's own start-up is not covered: the energy is of a slightly shorter time.
        full = step.power_w * elapsed_s
        assert 0.5 * full < row["energy"] <= full * 1.02
    assert len(table["rows"]) == 8

    seff = teho("report", "eight", "--format", "seff").stdout
    rows = re.findall(r"^ +\S+ +(\d) +(\d+\.\d\d) +\d+\.\d\d +(\d+) $", seff, re.MULTILINE)
    assert [(int(gpu), float(mean)) for gpu, mean, _ in rows] == [
        (gpu, pytest.approx(scenario.at(gpu, 1.0).busy_percent)) for gpu in range(8)
    ]

    page = tmp_path / "eight.html"
    assert teho("report", "eight", "--format", "html", "-o", page).returncode == 0
    assert "GPU 5" in page.read_text()

    table = library.load("eight").table("gpu")
    assert len(set(table["device"].to_pylist())) == 8


def test_a_gpu_that_is_lost_in_mid_run(teho, nvml_library: Path) -> None:
    environment = under(nvml_library, "h100x4_one_lost.txt")
    lost_after = float(
        re.search(r"^lost \d+ (\S+)", (nvml_stub.SCENARIOS / "h100x4_one_lost.txt").read_text(),
                  re.MULTILINE)[1]
    )  # fmt: skip
    ran = teho("run", "-q", "--every", "200ms", "--", "sleep", str(lost_after + 3), env=environment)
    assert ran.returncode == 0
    run = library.load("last")
    failed = [a for a in run.run.nodes[0].absences if a.missing.reason.value == "failed"]
    assert failed
    assert all("lost" in absence.missing.detail.lower() for absence in failed)
    assert {absence.device for absence in failed} < {
        device.id for device in run.run.nodes[0].devices
    }
    assert run.view.verdict


def test_what_the_driver_reports_of_a_gpu_is_printed_while_it_runs(
    teho, nvml_library: Path, tmp_path: Path
) -> None:
    # Again and again, for 15 s: on a busy machine the recorder may be late.
    often = [f"error {turn / 4} 1 xid 31" for turn in range(60)]
    scenario = nvml_stub.Scenario.load("h100x4_one_lost").plus(*often)
    environment = nvml_stub.environment(nvml_library, scenario.write(tmp_path / "xid.txt"))
    teho("run", "-q", "--every", "200ms", "--", "sleep", "3", env=environment)
    run = library.load("last")
    (trouble,) = run.run.nodes[0].troubles
    assert trouble.what.startswith("GPU 1: Xid 31 (")
    table = run.table("gpu")
    counts = zip(table["device"].to_pylist(), table["gpu_xid_errors"].to_pylist(), strict=True)
    assert dict(counts)[nvml_stub.gpu_uuid(1)] > 0


@pytest.mark.parametrize(
    ("scenario", "words"), [("no_driver.txt", "driver"), ("no_permission.txt", "permission")]
)
def test_no_gpu_is_reported_with_its_reason(
    teho, nvml_library: Path, scenario: str, words: str
) -> None:
    assert teho("run", "-q", "--", "true", env=under(nvml_library, scenario)).returncode == 0
    notes = " ".join(library.load("last").view.notes)
    assert "No GPU" in notes
    assert words in notes.lower()


def test_only_visible_gpus_count(teho, nvml_library: Path) -> None:
    environment = under(nvml_library, "h100x8_busy.txt") | {"CUDA_VISIBLE_DEVICES": "2,5"}
    teho("run", "-q", "--every", "100ms", "--", "sleep", "1", env=environment)
    devices = library.load("last").run.nodes[0].devices
    assert [device.index for device in devices] == [2, 5]


def test_the_short_report_the_full_one_and_none(teho) -> None:
    short = teho("run", "--", "true")
    assert short.stdout == ""
    assert "teho report" in short.stderr
    full = teho("run", "--report", "full", "--", "true").stderr
    assert len(full) > len(short.stderr)
    assert teho("run", "--report", "none", "--", "true").stderr == ""
    assert teho("run", "--quiet", "--", "true").stderr == ""


def test_no_progress_and_no_colour_in_a_pipe(teho) -> None:
    result = teho("run", "--", "true")
    assert "\x1b" not in result.stderr
    assert "recording" not in result.stderr.splitlines()[0]


def test_colour_on_a_terminal_unless_it_is_not_wanted() -> None:
    import pty

    for no_color, expected in ((None, True), ("1", False)):
        parent, child = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color"}
        if no_color:
            environment["NO_COLOR"] = no_color
        process = subprocess.Popen([*TEHO, "run", "--", "true"], stderr=child, env=environment)
        os.close(child)
        seen = b""
        while True:
            try:
                chunk = os.read(parent, 4096)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        process.wait(30)
        os.close(parent)
        assert (b"\x1b[" in seen) is expected
        assert b"recording" in seen  # the one line of progress that a terminal gets


def test_cpu_time_and_memory_are_the_programs_own(teho) -> None:
    program = "block = bytearray(200 * 2**20)\n" + BUSY.format(2.5) + "\nprint(time.process_time())"
    ran = teho("run", "-q", "--every", "200ms", "--", sys.executable, "-c", program)
    summary = library.load("last").summary
    # The program's own clock is the witness; it leaves out its start and its end.
    assert summary.cpu_s == pytest.approx(float(ran.stdout), abs=0.15)
    assert summary.nodes[0].memory_peak_bytes == pytest.approx(210 * 2**20, rel=0.15)


def test_a_read_only_home_costs_only_the_recording(teho, tmp_path: Path) -> None:
    # A file in its place refuses root as well.
    (tmp_path / "wall").write_text("")
    result = teho(
        "run", "--", "sh", "-c", "echo out; exit 4", env={"TEHO_HOME": str(tmp_path / "wall")}
    )
    assert (result.returncode, result.stdout) == (4, "out\n")
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("teho: nothing could be recorded: ")
    assert str(tmp_path / "wall") in lines[0]


def test_a_full_disk_costs_only_rows(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)],
        capture_output=True, check=False,
    ).returncode:  # fmt: skip
        pytest.skip("mounting a small file system needs root")
    try:
        result = subprocess.run(
            [*TEHO, "run", "--every", "100ms", "--", "sh", "-c",
             f"sleep 0.7; dd if=/dev/zero of='{small}/filler' 2>/dev/null; sleep 2; exit 6"],
            env={**os.environ, "TEHO_HOME": str(small)}, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip
        assert result.returncode == 6
        assert "Traceback" not in result.stderr
        assert "No space left" in result.stderr
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_home_that_vanishes_in_mid_run(teho, home: Path) -> None:
    result = teho(
        "run", "--every", "100ms", "--", "sh", "-c", f"sleep 1; rm -rf '{home}'; sleep 2; exit 6"
    )
    assert result.returncode == 6
    assert "Traceback" not in result.stderr
    assert "Trouble with the recording" in result.stderr
    assert "No such file" in result.stderr


def test_a_driver_that_crashes_or_hangs_costs_only_rows(teho, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build a faulty driver with")
    for name, body in (("crash", "abort();"), ("hang", "for (;;) pause();")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "x.c").write_text(
            "#include <stdlib.h>\n#include <unistd.h>\n"
            f"int nvmlInitWithFlags(unsigned f) {{ (void)f; {body} }}"
        )
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", folder / "x.c"],
            check=True,
        )
        began = time.monotonic()
        result = teho(
            "run", "--", "sh", "-c", "echo out; exit 3", env={"LD_LIBRARY_PATH": str(folder)}
        )
        assert (result.returncode, result.stdout) == (3, "out\n"), name
        words = {"crash": "SIGABRT", "hang": "did not finish in time"}[name]
        assert words in result.stderr + " ".join(library.load("last").view.notes)
        assert time.monotonic() - began < 60


def test_a_running_run_can_be_reported_on(teho, home: Path) -> None:
    process = subprocess.Popen([*TEHO, "run", "-q", "--every", "100ms", "--", "sleep", "30"])
    try:
        while not list(home.glob("runs/[!.]*/live/*")):
            assert process.poll() is None
            time.sleep(0.05)
        report = json.loads(teho("report", "--format", "json").stdout)
        assert report["state"] == "running"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert json.loads(teho("report", "--format", "json").stdout)["state"] == "finished"


def test_a_signal_that_a_scheduler_repeats_does_not_end_the_recorder(home: Path) -> None:
    process = subprocess.Popen([*TEHO, "run", "-q", "--every", "100ms", "--", "sleep", "30"])
    try:
        wait_for(lambda: list(home.glob("runs/[!.]*/live/*")))
        (directory,) = home.glob("runs/[!.]*")
        (node,) = read_run(directory).nodes
        program = Path(f"/proc/{node.program_pid}")
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: not program.exists())
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait(60)
    run = read_run(directory)
    assert [node.sealed for node in run.nodes] == [True]
    assert run.troubles == ()


def test_other_nodes_see_that_it_continues(teho, home: Path) -> None:
    process = subprocess.Popen([*TEHO, "run", "-q", "--every", "100ms", "--", "sleep", "60"])
    try:
        while not list(home.glob("runs/[!.]*/nodes/*.json")):
            assert process.poll() is None
            time.sleep(0.05)
        (run,) = home.glob("runs/[!.]*")
        for _ in range(2):  # once a file might be written anew
            files = [one for one in run.rglob("*") if one.is_file()]
            for one in files:
                with contextlib.suppress(FileNotFoundError):  # a temporary one
                    os.utime(one, (0, 0))
            # Readers take a run for interrupted if no file of it changes for 90 s.
            deadline_s = time.monotonic() + 60
            while not any(one.exists() and one.stat().st_mtime > 0 for one in files):
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def test_names_and_arguments_of_any_bytes(teho, tmp_path: Path) -> None:
    odd = tmp_path / "a b'\"$(x)\n\\é"
    odd.mkdir()
    arguments = ["a b'\"$(x)\n\\", "\udcff"]
    result = teho("run", "--name", "n '\"\n\\", "--", "true", *arguments, cwd=odd)
    assert result.returncode == 0
    for form in ("text", "json", "html", "seff"):
        assert teho("report", "--format", form).returncode == 0
    assert teho("list").returncode == 0


def test_a_command_loads_neither_numpy_nor_pandas(teho) -> None:
    assert teho("run", "-q", "--", "true").returncode == 0
    code = (
        "import sys; from teho.cli import main\n"
        "try: main(['report'])\n"
        "except SystemExit: assert 'pyarrow' in sys.modules\n"
        "print([name for name in ('numpy', 'pandas') if sys.modules.get(name)])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_what_is_loaded_before_the_program_starts() -> None:
    # Import cost is a contract: nothing heavy before the program runs, nothing for --help.
    code = (
        "import sys, teho.cli.run; from teho.observe.supervisor import Supervisor;"
        "print(sorted(m for m in ('pyarrow', 'rich', 'textual', 'jinja2', 'numpy', 'pynvml',"
        " 'asyncio', 'sqlite3', 'importlib.metadata') if m in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


CORES = """\
import json, os, time
time.sleep(0.5)
parent = os.getppid()
children = open(f"/proc/{parent}/task/{parent}/children").read().split()
(recorder,) = (int(pid) for pid in children if int(pid) != os.getpid())
pids = {"program": os.getpid(), "supervisor": parent, "recorder": recorder}
found = {name: sorted(os.sched_getaffinity(pid)) for name, pid in pids.items()}
print(json.dumps({**found, "variable": os.environ.get("TEHO_RECORDER_CORES")}))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one core")
def test_supervisor_and_recorder_leave_the_cores_of_a_program_that_is_compared(home: Path) -> None:
    every = sorted(os.sched_getaffinity(0))
    ran = subprocess.run(
        ["taskset", "-c", str(every[0]), *TEHO, "run", "-q", "--", sys.executable, "-c", CORES],
        env={**os.environ, "TEHO_RECORDER_CORES": ",".join(map(str, every))},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(ran.stdout) == {
        "program": every[:1],
        "supervisor": every,
        "recorder": every,
        "variable": None,
    }
    (run,) = (home / "runs").iterdir()
    (node,) = (json.loads(path.read_text()) for path in (run / "nodes").iterdir())
    assert node["allocation"]["cores"] == every[:1]


def test_cores_of_the_recorder_that_are_no_numbers_are_a_line_of_the_report(home: Path) -> None:
    ran = subprocess.run(
        [*TEHO, "run", "--", "true"],
        env={**os.environ, "TEHO_RECORDER_CORES": "all"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "the recorder stays on the program's cores" in " ".join(ran.stderr.split())
