"""`teho compare` with real programs and real recordings, from the command line to the verdict."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import nvml_stub
import pytest
from nvml_stub import Scenario

from experiment.samples import FREE, place
from support import TEHO
from teho.experiment.verdict import judge
from teho.model.compared import Compared, Point
from teho.show.json.noun import schema_of

ROOT = Path(__file__).parents[2]
KNOWN = ROOT / "examples" / "known"
CLUSTERS = ROOT / "tests" / "data" / "cli" / "clusters"
BUSY = Scenario(("gpus 8", "0 * 90 1000 500"))
IDLE = Scenario(("gpus 8", "0 * 0 0 60"))
STEPS = """\
import os, signal, sys, time
import teho

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # it ends well after SIGTERM
while True:
    time.sleep(0.01)
    teho.step()
"""
TWO_CORES = ("--on", "cpu:1,cpu:2", "--", sys.executable)
NO_GAIN = {"no_difference", "not_worth_it"}
WHERE = ("--on", "cpu:1,gpu:1", "--for", "60s")
needs_two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="this machine has only one core"
)

Compare = Callable[..., subprocess.CompletedProcess[str]]


def compare(
    *words: str | Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TEHO, "compare", *map(str, words)], env={**os.environ, **(env or {})},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def found(*words: str | Path, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the answer in JSON, which is as its schema has it."""
    done = compare("--format", "json", *words, env=env)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, schema_of(Compared))
    return answer


def shell(**took_s: float) -> list[str]:
    """Return a program with these times in s, without GPUs and with them."""
    cpu, gpu = took_s["cpu"], took_s["gpu"]
    return ["sh", "-c", f'case "$CUDA_VISIBLE_DEVICES" in -1) sleep {cpu};; *) sleep {gpu};; esac']


@pytest.fixture(scope="session")
def under(
    nvml: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Scenario], dict[str, str]]:
    """Return the environment of a node with the GPUs of a scenario."""

    def variables(scenario: Scenario) -> dict[str, str]:
        path = scenario.write(tmp_path_factory.mktemp("gpus") / "scenario.txt")
        return {**nvml_stub.environment(nvml, path), "TEHO_EVERY": "100ms"}

    return variables


@pytest.fixture(scope="module")
def faster(
    under, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what came of a program that is faster on a GPU, and prints other results; its home."""
    home = dict.fromkeys(("TEHO_HOME", "XDG_CONFIG_HOME"), str(tmp_path_factory.mktemp("home")))
    program = shell(cpu=0.9, gpu=0.3)
    program[-1] += '; case "$CUDA_VISIBLE_DEVICES" in -1) echo sum 10;; *) echo sum 11;; esac'
    return found(*WHERE, "--", *program, env=under(BUSY) | home), home


def as_judged(answer: dict[str, Any]) -> Point:
    """Return the only point, after judging its runs again: the verdict follows from the figures.

    Times of real programs depend on what else the machine does, so no test here expects a verdict
    that rests on them. test_contest.py tests the verdict with fixed times.
    """
    (point,) = msgspec.convert(answer, Compared).points
    runs = {place(one.name, one.cores): one.samples for one in point.variants}
    again = judge(runs, FREE)
    assert (again.outcome, again.verdict) == (answer["outcome"], answer["verdict"])
    assert again.contest == point.contest
    assert set(again.notes) <= set(point.notes)
    return point


# ---- programs whose answer is known ----


@needs_two_cores
@pytest.mark.parametrize(
    "words",
    [("parallel.py", "--below", "60000"), ("serial.py", "--steps", "1000000")],
    ids=lambda words: words[0],
)
def test_whole_runs_are_compared_by_their_time(words: tuple[str, ...]) -> None:
    name, *options = words
    # Little work and much time: three rounds fit in, however busy the machine is.
    point = as_judged(found("--for", "2min", *TWO_CORES, KNOWN / name, *options))
    assert point.measure == "time"
    assert point.contest is not None
    assert (point.contest.larger, point.contest.smaller) == ("cpu:2", "cpu:1")
    assert all(one.is_whole for variant in point.variants for one in variant.samples)
    assert not any("other results" in note for note in point.notes)


@needs_two_cores
def test_the_imports_of_a_tiny_program_are_seen() -> None:
    pytest.importorskip("numpy")
    point = as_judged(found("--for", "2min", *TWO_CORES, KNOWN / "tiny.py"))
    # The note about imports is judged from these figures, as `as_judged` checks.
    samples = [one for variant in point.variants for one in variant.samples]
    assert all(one.import_s is not None and one.import_s < one.elapsed_s for one in samples)


@needs_two_cores
def test_a_program_that_is_twice_as_fast_on_two_cores_should_use_them(tmp_path: Path) -> None:
    # Steps that only sleep: beside other programs they start late by some ms of 100 or 200 ms, so
    # their ratio stays far above the 1.5 that two cores need.
    script = tmp_path / "train.py"
    script.write_text(STEPS.replace("0.01", "0.2 / len(os.sched_getaffinity(0))"))
    answer = found("--window", "2s", "--for", "3min", *TWO_CORES, script)
    assert answer["verdict"].startswith("Use 2 cores: they are ")
    assert as_judged(answer).outcome == "worth_it"


# ---- steps ----


@needs_two_cores
def test_an_endless_program_is_measured_by_its_steps_and_has_not_failed(
    teho: Compare, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(STEPS)
    options = ("--on", "cpu:1,cpu:2", "--window", "500ms", "--for", "60s")
    answer = found(*options, "--", sys.executable, script)
    (point,) = answer["points"]
    assert (point["measure"], point["unit"]) == ("pace", "step")
    # Beside other programs the verdict may stay open, but it is never a gain.
    assert answer["outcome"] in {*NO_GAIN, "not_enough_evidence"}, answer["verdict"]
    for variant in point["variants"]:
        for sample in variant["samples"]:
            assert 20 < sample["steps_per_s"] < 101
            assert not sample["is_whole"]
    tag = f"compare={answer['id']}"
    listed = json.loads(teho("list", "--format", "json", "--tag", tag).stdout)
    assert {row["tags"]["variant"] for row in listed} == {"cpu:1", "cpu:2"}
    text = teho("list", "--tag", tag).stdout
    assert text.count("measured long enough") == len(listed)
    report = json.loads(teho("report", listed[0]["id"], "--format", "json").stdout)
    assert not {"run_failed", "out_of_memory"} & {one["kind"] for one in report["findings"]}
    assert report["verdict_severity"] != "critical"
    assert "measured long enough" in teho("report", listed[0]["id"]).stdout
    # The recordings on disk give the same result.
    again = found("--recorded", tag)
    assert again["outcome"] != "worth_it"
    assert [one["name"] for one in again["points"][0]["variants"]] == ["cpu:1", "cpu:2"]


# ---- GPUs, by a stand-in for the driver ----


def test_a_gpu_that_is_faster_should_be_used(faster) -> None:
    answer, _ = faster
    assert answer["outcome"] == "worth_it", answer["verdict"]
    cores, gpu = answer["points"][0]["variants"]
    assert (gpu["gpus"], "H100" in gpu["gpu_name"]) == (1, True)
    assert (cores["gpus"], cores["samples"][0]["idle_gpus"]) == (0, None)


def test_other_results_on_the_gpu_are_reported(faster) -> None:
    assert faster[0]["points"][0]["notes"][0] == (
        "The program prints other results on gpu:1 than on cpu:1: line 1 is `sum 11` instead of "
        "`sum 10`."
    )


def test_the_price_of_a_gpu_may_decide(faster) -> None:
    answer, home = faster
    words = ("--recorded", f"compare={answer['id']}")
    dear = found("--gpu-cost", "100", *words, env=home)
    assert dear["outcome"] == "not_worth_it"
    assert "; for the same cost, 100 cores would be at most 100 times as fast" in dear["verdict"]
    birch = found("--site", "birch", *words, env={**home, "TEHO_CLUSTERS": str(CLUSTERS)})
    assert (birch["site"], birch["cost_unit"]) == ("Birch", "BU")
    assert [one["hourly_cost"] for one in birch["points"][0]["variants"]] == [1, 75]
    assert birch["outcome"] == "not_worth_it"


def test_a_gpu_that_is_slower_should_not_be_used(under) -> None:
    # Three times as long: a start that is late by a few 100 ms does not change the order.
    answer = found(*WHERE, "--", *shell(cpu=0.5, gpu=1.5), env=under(BUSY))
    assert as_judged(answer).outcome == "not_worth_it"


def test_a_gpu_that_is_as_fast_is_judged_by_its_times(under) -> None:
    # Within 5 %, the verdict would depend on the load of this machine.
    point = as_judged(found(*WHERE, "--", *shell(cpu=0.5, gpu=0.5), env=under(BUSY)))
    assert point.contest is not None
    assert point.contest.larger == "gpu:1"


def test_unused_gpus_are_named_and_cost_energy(under) -> None:
    answer = found("--on", "gpu:2", "--for", "60s", "--", "sleep", "3", env=under(IDLE))
    (point,) = answer["points"]
    assert point["notes"][0].startswith("On gpu:2, no GPU was ever busy")
    (sample,) = point["variants"][0]["samples"]
    assert sample["idle_gpus"] == 2
    assert sample["gpu_energy_j"] == pytest.approx(2 * 60 * sample["elapsed_s"], rel=0.1)


def test_a_framework_that_cannot_use_the_gpu_gives_no_verdict(under, torch_python: Path) -> None:
    code = "import torch; print(torch.ones(3).sum())"
    answer = found(*WHERE, "--", torch_python, "-c", code, env=under(IDLE))
    assert answer["outcome"] == "not_enough_evidence"
    _, gpu = answer["points"][0]["variants"]
    assert gpu["why"].startswith("its PyTorch 2.")
    assert gpu["why"].endswith(" is built for CPUs only")
    assert "gpu:1 could not be measured" in answer["points"][0]["notes"][0]


def test_without_a_gpu_the_rest_is_compared_and_what_is_missing_is_said(under) -> None:
    done = compare(*WHERE, "--", "true", env=under(Scenario(("gpus 0",))))
    assert done.returncode == 1
    assert "? Not enough evidence: only 1 core could be measured" in done.stdout
    assert "gpu:1 was left out: this job has no GPU" in done.stdout
    done = compare("--on", "gpu:1", "--", "true", env=under(Scenario(("gpus 0",))))
    assert done.returncode == 2
    assert "--on gpu:1: this job has no GPU" in done.stderr


def test_recordings_from_elsewhere_are_compared(under, teho: Compare) -> None:
    on_cpus, on_gpus = "sleep 1.5; echo sum 10", "sleep 0.2; echo sum 11"
    code = f'case "$CUDA_VISIBLE_DEVICES" in -1) {on_cpus};; *) {on_gpus};; esac'
    words = ("run", "-q", "--keep-output", "--tag", "set=a", "--", "sh", "-c", code)
    for _ in range(3):
        for visible in ("-1", "0"):
            environment = under(BUSY) | {"CUDA_VISIBLE_DEVICES": visible}
            assert teho(*words, env=environment).returncode == 0
    answer = found("--recorded", "set=a")
    assert answer["outcome"] == "worth_it"
    assert answer["id"] == ""
    assert [one["name"][:4] for one in answer["points"][0]["variants"]] == ["cpu:", "gpu:"]
    assert answer["points"][0]["contest"]["larger"] == "gpu:1"
    text = compare("--recorded", "set=a").stdout
    assert "These recorded runs took turns." in text
    assert "line 1 is `sum 11` instead of `sum 10`." in answer["points"][0]["notes"][0]
    assert not any("not kept" in note for note in answer["notes"])
    assert "`teho list" not in text
    assert "`teho report " in text


def test_what_was_never_recorded_is_not_said_to_have_had_no_time(teho: Compare) -> None:
    for rows, variant in (("10", "cpu:1"), ("10", "cpu:2"), ("90", "cpu:1")):
        tags = ("--tag", "set=b", "--tag", f"rows={rows}", "--tag", f"variant={variant}")
        assert teho("run", "-q", *tags, "--", "true").returncode == 0
    answer = found("--recorded", "set=b")
    whys = {
        (p["value"], one["name"]): one["why"] for p in answer["points"] for one in p["variants"]
    }
    assert whys[90, "cpu:2"] == "it was not recorded"
    assert "The output of these runs was not stored, so it was not compared" in answer["notes"][-1]


# ---- what goes wrong ----


def test_a_program_that_fails_only_on_the_gpu_is_left_out_with_its_last_line(under) -> None:
    program = ["sh", "-c", '[ "$CUDA_VISIBLE_DEVICES" = -1 ] || { echo no kernel >&2; exit 3; }']
    done = compare(*WHERE, "--", *program, env=under(BUSY))
    assert done.returncode == 1
    assert "✗ gpu:1: it ended with exit code 3: no kernel" in done.stdout
    assert "gpu:1 could not be measured: this verdict covers only CPU cores." in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "no-such-program"], "no-such-program: command not found"),
        (["--on", "cpu:9999", "--", "true"], "--on cpu:9999: this job has"),
        (["--on", "tpu:1", "--", "true"], "--on tpu:1; expected cpu:N"),
        (["--for", "5s", "--window", "5s", "--", "true"], "--window 5s and --for 5s"),
        (["--site", "nowhere", "--", "true"], "no cluster 'nowhere' in the catalogue"),
        (["--sweep", "rows=1,2", "--", "true"], "{rows} is not in the command"),
        (["--sweep", "rows=0", "--", "echo", "{rows}"], "--sweep rows=0; expected NAME=NUMBER"),
        (["--sweep", "rows=1,a", "--", "echo", "{rows}"], "expected NAME=NUMBER"),
        (["--recorded", "set=none"], "no recording has the tag set=none"),
        (["--recorded", "x", "--", "true"], "one of the two"),
        (["--recorded", "x", "--cluster", "birch"], "--cluster"),
        (["--recorded", "x", "--on", "cpu:1"], "--on has no effect with --recorded"),
        (["--cluster", "birch", "--sweep", "n=1", "--", "a{n}"], "--sweep has no effect with"),
        (["--repeats", "3", "--", "true"], "--repeats has no effect without --cluster"),
        (["--cluster", "a", "--on", "cpu:1", "--window", "0s", "--", "true"], "--window 0s; exp"),
        (["--plot", "x.gif", "--", "true"], "--plot x.gif"),
        ([], "one of the two"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_in_one_line(words: list[str], said: str) -> None:
    done = compare(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_all_processes_and_the_recording_is_not_a_failure(
    teho: Compare, tmp_path: Path
) -> None:
    mark = tmp_path / "pid"
    script = tmp_path / "train.py"
    script.write_text(
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "time.sleep(1000)\n"
    )
    argv = [*TEHO, "compare", "--on", "cpu:1,cpu:all", "--", sys.executable, script, mark]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as comparing:
        until_s = time.monotonic() + 60
        while not (mark.exists() and mark.read_text()) and time.monotonic() < until_s:
            time.sleep(0.05)
        child = int(mark.read_text())
        comparing.send_signal(signal.SIGINT)
        output, errors = comparing.communicate(timeout=60)
    assert comparing.returncode == 130
    assert "Traceback" not in errors
    assert "It was ended early." in output
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or ") Z " in state.read_text()
    assert "ended with its comparison" in teho("list", "--all").stdout


# ---- a number that is swept, and a cluster ----


def test_each_number_of_a_sweep_is_put_into_the_command(teho: Compare) -> None:
    options = ("--on", "cpu:1", "--for", "60s", "--sweep", "n=1234567,0.5")
    answer = found(*options, "--", "sh", "-c", 'echo "$0"', "a{n}b")
    assert [point["value"] for point in answer["points"]] == [0.5, 1234567]
    assert answer["command"][-1] == "a{n}b"
    listed = json.loads(teho("list", "--format", "json").stdout)
    assert {row["command"][-1] for row in listed} == {"a0.5b", "a1234567b"}
    again = found("--recorded", f"compare={answer['id']}")
    assert again["swept"] == "n"
    assert [point["value"] for point in again["points"]] == [0.5, 1234567]


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder into which an `sbatch` puts its scripts; it refuses a third one."""
    folder = tmp_path / "submitted"
    folder.mkdir()
    path = tmp_path / "bin" / "sbatch"
    path.parent.mkdir()
    path.write_text(
        "#!/bin/bash\n"
        "[[ $1 == --test-only ]] && exit 0\n"
        f"count=$(ls {folder} | wc -l)\n"
        "if [ $count = 2 ]; then\n"
        "echo 'sbatch: error: Batch job submission failed: Invalid qos specification' >&2; exit 1\n"
        "fi\n"
        f'for word in "$@"; do [ -f "$word" ] && cp "$word" {folder}/$count; done\n'
        f"[ -f {folder}/$count ] || cat > {folder}/$count\n"
        "echo 471$count\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    monkeypatch.setenv("TEHO_CLUSTERS", str(CLUSTERS))
    monkeypatch.chdir(tmp_path)
    return folder


def test_on_a_cluster_each_variant_is_an_array_of_jobs(sbatch: Path) -> None:
    done = compare("--cluster", "birch", "--on", "cpu:16,gpu:1", "--submit", "--account tree_1",
                   "--", "python", "fit.py", "a b")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4710", "4711"]
    assert "after the jobs have ended: `teho compare --recorded compare=" in done.stderr
    tag = done.stderr.partition("--recorded ")[2].split("`")[0]
    measured = f"--tag {tag}", "--window 10s", "--keep-output", "fit.py 'a b'"
    for name, options in (
        ("0", ["--tag variant=cpu:16", "--cpus-per-task=16"]),
        ("1", ["--tag variant=gpu:1", "--gres=gpu:a100:1"]),
    ):
        script = (sbatch / name).read_text()
        for option in (*options, "--array=1-3", "--account=tree_1", *measured):
            assert option in script


@pytest.mark.parametrize(
    ("words", "window"), [(["--full"], None), (["--window", "1min"], "1min")], ids=["full", "1min"]
)
def test_jobs_run_as_long_as_runs_here_would(
    sbatch: Path, words: list[str], window: str | None
) -> None:
    done = compare("--cluster", "birch", "--on", "cpu:1", *words, "--submit", "--account a", "--",
                   "true")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.findall(r"--window (\S+)", (sbatch / "0").read_text()) == ([window] if window else [])


def test_a_job_ends_its_program_when_the_pace_is_known_and_has_done_well(
    teho: Compare, sbatch: Path, tmp_path: Path
) -> None:
    srun = tmp_path / "bin" / "srun"
    srun.write_text('#!/bin/bash\nexec "$@"\n')
    srun.chmod(0o755)
    (tmp_path / "train.py").write_text(STEPS)
    done = compare("--cluster", "birch", "--on", "cpu:1", "--window", "500ms", "--submit",
                   "--account a --framework none", "--", sys.executable, "train.py")  # fmt: skip
    job = {**os.environ, "SLURM_JOB_ID": "4710", "SLURM_CPUS_PER_TASK": "1"}
    assert subprocess.run(["bash", sbatch / "0"], env=job, timeout=120, check=False).returncode == 0
    tag = done.stderr.partition("--recorded ")[2].split("`")[0]
    assert "measured long enough" in teho("list", "--tag", tag).stdout


def test_what_was_submitted_before_a_refusal_is_said(sbatch: Path) -> None:
    done = compare("--cluster", "birch", "--on", "cpu:1,cpu:2,gpu:1", "--submit", "--account a",
                   "--", "true")  # fmt: skip
    assert done.returncode == 2
    assert "gpu:1 was not submitted; submitted: cpu:1 (job 4710), cpu:2 (job 4711)" in done.stderr


def test_without_on_a_gpu_is_compared_with_the_cores_that_come_with_it(sbatch: Path) -> None:
    done = compare("--cluster", "birch", "--submit", "--account a", "--", "true")
    assert "gpu:1 was not submitted; submitted: cpu:1 (job 4710), cpu:15 (job 4711)" in done.stderr
    assert "--cpus-per-task=15" in (sbatch / "1").read_text()


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("thin", "no job with a GPU for Birch; expected variants, such as `--on cpu:1,"),
        ("gpu", "no job with 15 cores and no GPU for Birch; expected variants, such as"),
    ],
)
def test_a_cluster_without_either_is_asked_about_before_anything_is_submitted(
    sbatch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: str, said: str
) -> None:
    text = (CLUSTERS / "birch.toml").read_text()
    (tmp_path / "birch.toml").write_text(re.sub("kinds = .*", f'kinds = ["{nodes}"]', text))
    monkeypatch.setenv("TEHO_CLUSTERS", str(tmp_path))
    done = compare("--cluster", "birch", "--submit", "--account a", "--", "true")
    assert done.returncode == 2
    assert said in done.stderr
    assert list(sbatch.iterdir()) == []


def test_a_job_has_what_it_asks_for_and_not_all(sbatch: Path) -> None:
    done = compare("--cluster", "birch", "--on", "cpu:all", "--", "true")
    assert done.returncode == 2
    assert "--on cpu:all with --cluster; expected cpu:N or gpu:N" in done.stderr
    assert list(sbatch.iterdir()) == []
