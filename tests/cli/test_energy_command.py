"""`teho energy`: the lines that LUMI's users know, and refusals instead of wrong figures."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nvml_stub
import pytest
from nvml_stub import Scenario, gpu_uuid

from support import TEHO

Teho = Callable[..., subprocess.CompletedProcess[str]]
LINE = re.compile(r"GPU (\d+): (\d+\.\d\d) Wh, avg power: (\d+\.\d\d) W \((\d+\.\d\d) s\)")
TOTAL = re.compile(r"TOTAL: (\d+\.\d\d) Wh")
STEADY = Scenario(("gpus 4", "0 * 50 1000 36000", "0 3 50 1000 72000"))
"""Of so much power that a hundredth of a Wh is less than 0.1 % of 10 s."""


@pytest.fixture(scope="session")
def library(nvml_library: Path) -> Path:
    return nvml_library


@pytest.fixture
def under(library: Path, tmp_path: Path) -> Callable[..., dict[str, str]]:
    def variables(scenario: Scenario, now_s: float | None = None) -> dict[str, str]:
        path = scenario.write(tmp_path / "scenario.txt")
        found = nvml_stub.environment(library, path, epoch_s=0.0)
        return found if now_s is None else {**found, "TEHO_STUB_NVML_NOW": repr(now_s)}

    return variables


def watt_hours(output: str) -> dict[int, float]:
    """Return each GPU's figure; fails where anything else is printed."""
    *lines, total = output.splitlines()
    found = {int(match[1]): float(match[2]) for match in map(LINE.fullmatch, lines)}
    assert float(TOTAL.fullmatch(total)[1]) == pytest.approx(sum(found.values()), abs=0.03)
    return found


def saved_files(home: Path) -> list[Path]:
    return sorted((home / "energy").glob("*/*.json"))


def test_save_and_diff(teho: Teho, under, home: Path) -> None:
    saved = teho("energy", "--save", env=under(STEADY, 100))
    assert (saved.returncode, saved.stdout, saved.stderr) == (0, "", "")
    assert len(saved_files(home)) == 4
    for path in saved_files(home):
        assert path.stat().st_mode & 0o077 == 0
    diff = teho("energy", "--diff", env=under(STEADY, 110))
    assert diff.returncode == 0
    assert watt_hours(diff.stdout) == pytest.approx({0: 100, 1: 100, 2: 100, 3: 200}, rel=1e-3)
    for match in map(LINE.fullmatch, diff.stdout.splitlines()[:-1]):
        energy_wh, power_w, elapsed_s = map(float, match.groups()[1:])
        # The time is written with two digits after the point.
        assert elapsed_s == pytest.approx(energy_wh * 3600 / power_w, abs=0.006)
    # Once more: what was saved stays, and is of the same moment.
    again = teho("energy", "--diff", env=under(STEADY, 120))
    assert watt_hours(again.stdout)[0] == pytest.approx(200, rel=1e-3)


def test_the_newest_save_counts(teho: Teho, under) -> None:
    """A script that measures two programs one after the other saves twice."""
    teho("energy", "--save", env=under(STEADY, 100))
    teho("energy", "--save", env=under(STEADY, 200))
    diff = teho("energy", "--diff", env=under(STEADY, 210))
    assert watt_hours(diff.stdout)[0] == pytest.approx(100, rel=1e-3)


def test_many_ranks_of_a_node_may_save_at_once(teho: Teho, under, home: Path) -> None:
    variables = under(STEADY, 100)
    with ThreadPoolExecutor(8) as pool:
        saves = list(pool.map(lambda _: teho("energy", "--save", env=variables), range(8)))
    assert {save.returncode for save in saves} == {0}
    assert len(saved_files(home)) == 4
    assert not list((home / "energy").glob("*/.*"))
    diff = teho("energy", "--diff", env=under(STEADY, 110))
    assert watt_hours(diff.stdout)[3] == pytest.approx(200, rel=1e-3)


def rank(number: int, of: int = 4, **more: str) -> dict[str, str]:
    """Return what srun gives a task of a node."""
    return {
        "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(number),
        "SLURM_STEP_NUM_TASKS": str(of), "SLURM_NTASKS": str(of), "SLURM_LOCALID": str(number),
        "SLURM_NODEID": "0", "SLURM_STEP_NODELIST": "n1", "SLURM_STEP_TASKS_PER_NODE": str(of),
        "SLURM_GPUS_ON_NODE": "4", "SLURM_JOB_GPUS": "0,1,2,3", **more,
    }  # fmt: skip


def test_ranks_that_see_all_gpus_do_not_count_them_each(teho: Teho, under) -> None:
    """Naive: four ranks print four totals, and their sum is four times the node's."""
    for number in range(4):
        teho("energy", "--save", env=under(STEADY, 100) | rank(number))
    outputs = [
        teho("energy", "--diff", env=under(STEADY, 110) | rank(number)).stdout
        for number in range(4)
    ]
    assert watt_hours(outputs[0]) == pytest.approx({0: 100, 1: 100, 2: 100, 3: 200}, rel=1e-3)
    assert outputs[1:] == ["", "", ""]


def test_ranks_with_gpus_of_their_own_all_print(teho: Teho, under) -> None:
    # The script saved them all; each rank finds its own.
    script = {"SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": "0,1,2,3"}
    teho("energy", "--save", env=under(STEADY, 100) | script)
    for number, energy_wh in enumerate((100, 100, 100, 200)):
        own = {"CUDA_VISIBLE_DEVICES": str(number)}
        diff = teho("energy", "--diff", env=under(STEADY, 110) | rank(number) | own)
        assert watt_hours(diff.stdout) == pytest.approx({0: energy_wh}, rel=1e-3)


def test_only_visible_gpus_count(teho: Teho, under) -> None:
    teho("energy", "--save", env=under(STEADY, 100))
    variables = under(STEADY, 110) | {"CUDA_VISIBLE_DEVICES": "3,1"}
    diff = teho("energy", "--diff", env=variables)
    assert watt_hours(diff.stdout) == pytest.approx({0: 200, 1: 100}, rel=1e-3)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("teho: ")
    assert done.stderr.count("\n") == 1
    for word in (*words, "Next:"):
        assert word in done.stderr


def test_nothing_saved(teho: Teho, under) -> None:
    refused(teho("energy", "--diff", env=under(STEADY, 10)), gpu_uuid(0), "--save")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"boot": 3}', b"\xff\x00", None])
def test_a_damaged_file(teho: Teho, under, home: Path, content: bytes | None) -> None:
    teho("energy", "--save", env=under(STEADY, 100))
    path = saved_files(home)[2]
    if content is None:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(content)
    refused(teho("energy", "--diff", env=under(STEADY, 110)), path.name, "--save")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"boot": "another"}, "restarted"),
        ({"job": "4710"}, "in job 4710, but this command runs outside a job"),
        ({"at_s": 1e12}, "in the future"),
    ],
)
def test_what_was_saved_elsewhere_is_refused(
    teho: Teho, under, home: Path, changes: Mapping[str, object], words: str
) -> None:
    teho("energy", "--save", env=under(STEADY, 100))
    path = saved_files(home)[0]
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    refused(teho("energy", "--diff", env=under(STEADY, 110)), words, "--save")


def test_what_another_job_saved_is_refused(teho: Teho, under) -> None:
    teho("energy", "--save", env=under(STEADY, 100) | {"SLURM_JOB_ID": "1", "SLURM_GPUS": "4"})
    own = {"SLURM_JOB_ID": "2", "SLURM_GPUS": "4"}
    refused(
        teho("energy", "--diff", env=under(STEADY, 110) | own),
        "in job 1, but this command runs in job 2",
    )


def test_a_driver_that_was_loaded_meanwhile(teho: Teho, under) -> None:
    """Naive: a negative energy, or the counter's own value."""
    teho("energy", "--save", env=under(STEADY, 100))
    refused(teho("energy", "--diff", env=under(STEADY, 4)), "GPU 0", "again from 0")


def test_a_counter_that_stopped(teho: Teho, under, home: Path) -> None:
    """Naive: 0.00 Wh."""
    teho("energy", "--save", env=under(STEADY, 100))
    for path in saved_files(home):
        saved = json.loads(path.read_text())
        path.write_text(json.dumps(saved | {"at_s": saved["at_s"] - 5}))
    refused(teho("energy", "--diff", env=under(STEADY, 100)), "GPU 0", "does not change")


NO_COUNTER = STEADY.plus("fail nvmlDeviceGetTotalEnergyConsumption * NOT_SUPPORTED")


@pytest.mark.parametrize("way", ["--save", "--diff"])
def test_without_a_counter_two_calls_have_no_result(teho: Teho, under, way: str) -> None:
    refused(teho("energy", way, env=under(NO_COUNTER, 1)), "GPUs 0, 1, 2, 3", "-- COMMAND")


def test_mig_instances_have_no_energy(teho: Teho, under) -> None:
    done = teho("energy", "--save", env=under(Scenario.load("a100_mig"), 1))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "teho: no energy from GPUs 0, 1: energy is counted only for the whole GPU, which MIG "
        "instances share\n"
    )


@pytest.mark.parametrize("way", ["--save", "--diff"])
def test_without_a_gpu(teho: Teho, under, way: str) -> None:
    refused(
        teho("energy", way, env=under(Scenario.load("no_driver"))),
        "Teho cannot read the energy of any GPU: ",
        "teho devices",
    )


@pytest.mark.parametrize("words", [[], ["--save", "--diff"], ["--save", "--", "true"]])
def test_one_of_three_ways_is_needed(teho: Teho, words: list[str]) -> None:
    done = teho("energy", *words)
    assert done.returncode == 2
    assert "Give one of these three: --save, --diff or '-- COMMAND" in done.stderr


# Beside a program


def test_a_program_keeps_its_output_and_exit_code(teho: Teho, under) -> None:
    done = teho(
        "energy", "--", "sh", "-c", "cat; echo err >&2; sleep 1; exit 7",
        env=under(STEADY), stdin="in\n",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (7, "in\n")
    first, *lines = done.stderr.splitlines()
    assert first == "err"
    figures = [LINE.fullmatch(line) for line in lines if line.startswith("GPU")]
    assert len(figures) == 4
    for match, power_w in zip(figures, (36000, 36000, 36000, 72000), strict=True):
        assert float(match[3]) == pytest.approx(power_w, rel=0.02)
        assert float(match[4]) >= 1


def test_a_program_that_does_not_exist(teho: Teho, under) -> None:
    done = teho("energy", "--", "no-such-program", env=under(STEADY))
    assert done.returncode == 127
    assert done.stderr == "teho: no-such-program: command not found\n"


def test_a_program_dies_of_its_signal_and_so_do_we(teho: Teho, under) -> None:
    done = teho("energy", "--", "sh", "-c", "kill -9 $$", env=under(STEADY))
    assert done.returncode == -signal.SIGKILL
    assert "TOTAL" in done.stderr


def test_a_signal_reaches_the_program_once(under, tmp_path: Path) -> None:
    program = (
        "import signal, sys, time\n"
        "count = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: count.append(1))\n"
        f"open({str(tmp_path / 'up')!r}, 'w').close()\n"
        "end = time.monotonic() + 20\n"
        "while not count and time.monotonic() < end: time.sleep(0.01)\n"
        "time.sleep(0.5)\n"
        "sys.exit(40 + len(count))\n"
    )
    process = subprocess.Popen(
        [*TEHO, "energy", "--", sys.executable, "-c", program],
        env={**os.environ, **under(STEADY)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not (tmp_path / "up").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 41
    assert "TOTAL" in stderr


def test_without_a_counter_power_is_added_up(teho: Teho, under) -> None:
    done = teho("energy", "--", "sleep", "2", env=under(NO_COUNTER))
    assert done.returncode == 0
    figures = [match for match in map(LINE.fullmatch, done.stderr.splitlines()) if match]
    assert [float(match[3]) for match in figures] == pytest.approx(
        [36000, 36000, 36000, 72000], rel=0.05
    )
    assert "GPU 0 has no energy counter: the energy is computed from the power" in done.stderr


def test_a_part_that_is_not_known_leaves_no_total(teho: Teho, under) -> None:
    done = teho("energy", "--", "true", env=under(Scenario.load("a100_mig")))
    assert done.returncode == 0
    assert "GPU 2: " in done.stderr
    assert "no energy from GPUs 0, 1: " in done.stderr
    assert "TOTAL" not in done.stderr


def test_without_a_gpu_the_program_runs_all_the_same(teho: Teho, under) -> None:
    done = teho("energy", "--", "sh", "-c", "exit 3", env=under(Scenario.load("no_driver")))
    assert done.returncode == 3
    assert done.stderr.startswith("teho: no energy: Teho cannot read the energy of any GPU: ")


@pytest.fixture
def hanging(library: Path, tmp_path: Path) -> dict[str, str]:
    """A driver that never answers: its scenario is a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "pipe")
    return nvml_stub.environment(library, tmp_path / "pipe")


def test_a_driver_that_hangs_does_not_delay_the_program(teho: Teho, hanging) -> None:
    done = teho("energy", "--", "sh", "-c", "echo out; exit 5", env=hanging)
    assert (done.returncode, done.stdout) == (5, "out\n")
    assert done.stderr == "teho: no energy: the GPUs' driver did not answer within 10 s\n"


def test_who_is_ended_before_the_program_began_ends(hanging) -> None:
    process = subprocess.Popen([*TEHO, "energy", "--", "true"], env={**os.environ, **hanging})
    time.sleep(2)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=5) == -signal.SIGTERM


def test_of_ranks_that_see_the_same_gpus_one_measures(teho: Teho, under) -> None:
    outputs = [
        teho("energy", "--", "sh", "-c", "exit 5", env=under(STEADY) | rank(number))
        for number in range(2)
    ]
    assert [done.returncode for done in outputs] == [5, 5]
    assert "TOTAL" in outputs[0].stderr
    assert outputs[1].stderr == ""


def test_it_loads_little(under) -> None:
    """It stands twice in a job's script: what reports need stays away."""
    code = (
        "import sys; sys.argv = ['teho', 'energy', '--save']\n"
        "from teho.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **under(STEADY, 1)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert "teho.devices.meter" in loaded
    assert not loaded & {"pyarrow", "rich", "jinja2", "teho.explain", "teho.devices.nvidia.source"}
