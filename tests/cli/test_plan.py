"""`teho plan` as a user meets it: text at 80 columns, JSON by its schema, mistakes in one line."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import teho as library
from show.golden import check as check_golden
from support import TEHO
from teho.errors import InputError
from teho.model.request import Request
from teho.show.json.plan import schema

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "cli"
TREES = ["--cluster", "birch", "--cluster", "maple", "--cluster", "aspen"]

Teho = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put made-up clusters beside the real ones, whose facts change."""
    monkeypatch.setenv("TEHO_CLUSTERS", str(DATA / "clusters"))


SCENARIOS = {
    "one-gpu": (0, [*TREES, "--time", "2h", "--", "python", "train.py"]),
    "two-nodes": (
        0,
        [*TREES, "--gpus", "8", "--launcher", "srun", "--time", "12h", "--account", "tree_9"],
    ),
    "cores-above-share": (
        0,
        ["--cluster", "birch", "--cpus-per-gpu", "30", "--local-disk", "100GiB"],
    ),
    "without-gpu": (0, ["--cluster", "birch", "--gpus", "0", "--cpus", "16", "--time", "1d"]),
    "nothing-fits": (1, [*TREES, "--gpus", "3", "--time", "20d", "--gpu-memory", "64GiB"]),
    "retired": (1, ["--cluster", "aspen", "--gpus", "2"]),
    "even-if-retired": (0, ["--cluster", "aspen", "--even-if-retired", "--time", "1h"]),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_plan_as_text(teho: Teho, name: str) -> None:
    code, arguments = SCENARIOS[name]
    for level, file in ([], f"plan-{name}.txt"), (["--why"], f"plan-{name}-why.txt"):
        result = teho("plan", *level, *arguments)
        assert result.returncode == code, result.stderr
        assert result.stderr == ""
        lines = result.stdout.splitlines()
        # A command is there to be copied: it stands on one line.
        assert all(len(line) <= 80 for line in lines if "→ teho plan" not in line)
        check_golden(DATA / file, result.stdout)


@pytest.mark.parametrize("words", [[], ["--gpus", "4"], ["--gpus", "0"], ["--gpus", "900"]])
def test_a_plan_over_the_whole_catalogue_fits_a_screen(teho: Teho, words: list[str]) -> None:
    result = teho("plan", *words, "--time", "12h", "--", "train.py")
    assert len(result.stdout.splitlines()) <= 40
    assert len(teho("plan", "--why", *words, "--time", "12h").stdout.splitlines()) > 40


def test_the_command_that_writes_the_script_works_as_it_is_printed(
    teho: Teho, tmp_path: Path
) -> None:
    words = ["--time", "2h", "--name", "my job", "--", "python", "a b.py", "--cluster"]
    told = teho("plan", "--cluster=maple,birch", "--cluster", "birch", *words).stdout
    (line,) = (line for line in told.splitlines() if "→ teho plan" in line)
    command = line.partition("→ teho ")[2]
    assert command.startswith("plan --time 2h --name 'my job' --cluster birch --script -- python")
    shell = f"{shlex.join(map(str, TEHO))} {command}"
    subprocess.run(["sh", "-c", shell], cwd=tmp_path, check=True, timeout=60)
    assert "srun python 'a b.py' --cluster" in (tmp_path / "job.sh").read_text()
    assert "→ teho plan --cluster " in teho("plan").stdout


def test_clusters_of_the_user_come_first(teho: Teho) -> None:
    told = json.loads(teho("plan", *TREES, "--format", "json").stdout)
    assert told["options"][0]["cluster"] == "birch"
    env = {"TEHO_MY_CLUSTERS": "maple, birch"}
    told = json.loads(teho("plan", *TREES, "--format", "json", env=env).stdout)
    assert told["options"][0]["cluster"] == "maple"
    wrong = teho("plan", *TREES, env={"TEHO_MY_CLUSTERS": "mapel"})
    assert wrong.returncode == 2
    assert "did you mean 'maple'" in wrong.stderr


def test_json_is_as_its_schema_says(teho: Teho) -> None:
    for code, arguments in SCENARIOS.values():
        split = arguments.index("--") if "--" in arguments else len(arguments)
        result = teho("plan", *arguments[:split], "--format", "json", *arguments[split:])
        assert result.returncode == code
        plan = json.loads(result.stdout)
        jsonschema.Draft202012Validator(schema()).validate(plan)
        assert plan["schema"] == "teho.plan/2"
        assert bool(plan["options"]) == (code == 0)


def test_the_command_is_kept_as_it_was_typed(teho: Teho) -> None:
    words = ["--", "python", "a b.py", "--gpus", "9", "quote'\"\n"]
    plan = json.loads(teho("plan", "--cluster", "birch", "--format", "json", *words).stdout)
    assert plan["options"][0]["request"]["command"] == words[1:]
    assert plan["options"][0]["request"]["gpus"] == 1


def test_bytes_that_are_no_text_are_written_out() -> None:
    arguments = [*TEHO, "plan", "--cluster", "birch", "--format", "json", "--", b"\xff"]
    output = subprocess.run(arguments, capture_output=True, check=True, timeout=60).stdout
    assert json.loads(output)["options"][0]["request"]["command"] == ["\\udcff"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--time", "60"], ["--time", "'60'", "60min"]),
        (["--time", "soon"], ["--time", "'soon'", "1h30m"]),
        (["--time", "0min"], ["--time", "30min"]),
        (["--gpu-memory", "30"], ["--gpu-memory", "30 bytes", "64GiB"]),
        (["--mem", "much"], ["--mem", "'much'", "64G"]),
        (["--local-disk", "1x"], ["--local-disk", "'1x'"]),
        (["--cluster", "brich"], ["'brich'", "did you mean 'birch'?", "teho clusters"]),
        (["--gpu-type", "a1000"], ["--gpu-type", "'a1000'", "did you mean 'a100'?"]),
        (["--gpus", "-1"], ["--gpus", "teho plan --help"]),
        (["--gpus", "a100:2"], ["a number", "`--gpus 2 --gpu-type a100`"]),
        (["--gpus", "gpu:a100:2"], ["a number", "`--gpus 2 --gpu-type a100`"]),
        (["--gpus", ":2"], ["--gpus", "':2'", "teho plan --help"]),
        (["--launcher", "mpirun"], ["--launcher", "torchrun"]),
        (["--gpus", "0", "--cpus-per-gpu", "4"], ["--cpus-per-gpu", "--cpus"]),
        (["--gpus", "0", "--gpu-type", "a100"], ["--gpu-type", "--gpus 0"]),
        (["--cpus", "4", "--cpus-per-gpu", "4"], ["--cpus", "one of them"]),
        (["--scirpt"], ["--scirpt", "teho plan --help"]),
        (["--script", "--format", "json"], ["--script", "--format json", "one of them"]),
        (["--script", "--cluster", "birch"], ["without a command", "-- COMMAND"]),
        (["--record"], ["--record has no effect without --script"]),
        (["--line", "true"], ["--line has no effect without --script"]),
        (["--script", "--signal", "soon", "--", "x"], ["--signal", "'soon'"]),
    ],
)
def test_a_mistake_is_one_line(teho: Teho, arguments: list[str], words: list[str]) -> None:
    result = teho("plan", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("teho: ")
    for word in words:
        assert word in line


def test_a_type_that_another_cluster_has_is_refused_with_the_limit(teho: Teho) -> None:
    result = teho("plan", "--cluster", "birch", "--gpu-type", "mi300")
    assert result.returncode == 1
    assert "mi300" in result.stdout


def test_only_the_files_of_named_clusters_are_read(teho: Teho, tmp_path: Path) -> None:
    (tmp_path / "birch.toml").write_bytes((DATA / "clusters" / "birch.toml").read_bytes())
    (tmp_path / "rotten.toml").write_text("name = ")
    env = {"TEHO_CLUSTERS": str(tmp_path)}
    assert teho("plan", "--cluster", "birch", env=env).returncode == 0
    result = teho("plan", env=env)
    assert result.returncode == 2
    assert "rotten.toml" in result.stderr


def test_the_whole_catalogue_is_planned(teho: Teho) -> None:
    plan = json.loads(teho("plan", "--format", "json").stdout)
    assert {"lumi", "roihu"} <= {option["cluster"] for option in plan["options"]}
    assert "puhti" in {unfit["cluster"] for unfit in plan["unfit"]}


@pytest.mark.parametrize("here", ["narval", "fir"])
def test_the_cluster_of_this_machine_comes_first(teho: Teho, tmp_path: Path, here: str) -> None:
    # As in a container of the cluster: Slurm's commands are there, and their configuration is not.
    for name in ("sbatch", "scontrol", "sinfo", "sacctmgr", "sshare", "squeue"):
        command = tmp_path / name
        command.write_text(
            f"#!/bin/sh\necho '{name}: fatal: Could not establish a configuration source' >&2\n"
            "exit 1\n"
        )
        command.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    plan = json.loads(
        teho("plan", "--format", "json", env={"CC_CLUSTER": here, "PATH": path}).stdout
    )
    assert plan["options"][0]["cluster"] == here


def test_only_the_script_goes_to_standard_output(teho: Teho) -> None:
    words = ["--mem", "64GiB", "--script", "--", "python", "train.py"]
    result = teho("plan", "--cluster", "birch", *words)
    assert result.returncode == 0
    assert result.stdout.startswith("#!/bin/bash\n")
    assert result.stdout.endswith("\nsrun python train.py\n")
    assert result.stderr
    assert all(line.startswith("teho: ") for line in result.stderr.splitlines())


def test_every_option_of_a_script_is_in_it(teho: Teho) -> None:
    result = teho(
        "plan", "--cluster", "narval", "--time", "2h", "--script", "--record", "--framework",
        "none", "--line", "source one", "--line", "two", "--stage", "a.tar", "--array", "1-3",
        "--after", "5", "--after", "6", "--signal", "2min", "--requeue", "--log", "%j.log",
        "--name", "a name", "--", "python", "a b.py",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    for line in (
        '#SBATCH --job-name="a name"', "#SBATCH --array=1-3", "#SBATCH --dependency=afterok:5:6",
        "#SBATCH --signal=B:USR1@120", "#SBATCH --requeue", "#SBATCH --output=%j.log",
        "source one", "two", "srun teho run -- python 'a b.py' &",
    ):  # fmt: skip
        assert line in result.stdout.splitlines()
    assert 'tar -xf a.tar -C "$SLURM_TMPDIR"' in result.stdout
    assert "module" not in result.stdout


def test_a_script_is_for_one_cluster(teho: Teho) -> None:
    result = teho("plan", *TREES, "--script", "--", "x")
    assert result.returncode == 2
    assert result.stdout == ""
    assert "birch, maple" in result.stderr or "maple, birch" in result.stderr
    assert "--cluster " in result.stderr


def test_if_nothing_fits_no_script_is_written(teho: Teho) -> None:
    result = teho("plan", *TREES, "--gpus", "3", "--time", "20d", "--script", "--", "x")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "No partition fits" in result.stderr


def test_bytes_that_are_no_text_are_in_the_script() -> None:
    arguments = [*TEHO, "plan", "--cluster", "birch", "--script", "--line"]
    arguments += [b"echo \xff", "--", b"\xfe"]
    output = subprocess.run(arguments, capture_output=True, check=True, timeout=60).stdout
    assert b"\necho \xff\n" in output
    assert b"srun $'\\xfe'\n" in output


def test_a_mistake_in_a_template_is_one_line(teho: Teho, tmp_path: Path) -> None:
    (tmp_path / "slurm.sh.j2").write_text("\n{{ nods }}\n")
    env = {"TEHO_TEMPLATES": str(tmp_path)}
    result = teho("plan", "--cluster", "birch", "--script", "--", "x", env=env)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{tmp_path / 'slurm.sh.j2'}:2: 'nods' is undefined" in result.stderr.splitlines()[-1]


def test_json_loads_no_terminal_library() -> None:
    code = (
        "import sys; from teho.cli.group import teho\n"
        "teho.main(['plan', '--cluster', 'birch', '--format', 'json'], standalone_mode=False)\n"
        "assert not {'rich', 'pyarrow', 'jinja2'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


def test_the_library_gives_the_same() -> None:
    answer = library.plan(Request(gpus=2, time_s=3600.0), ["birch", "aspen"])
    assert {option.cluster for option in answer.options} == {"birch"}
    assert answer.options[0].cost is not None
    assert [unfit.refusals[0].kind for unfit in answer.unfit if unfit.cluster == "aspen"] == [
        "retired"
    ]
    study = library.plan(Request(), ["aspen"], even_if_retired=True)
    assert study.options
    with pytest.raises(InputError, match="did you mean 'birch'"):
        library.plan(Request(), ["brich"])
    assert {"birch", "lumi"} <= {option.cluster for option in library.plan(Request()).options}


def test_a_limit_keeps_its_subject_after_a_sentence_with_another(teho: Teho) -> None:
    done = teho("plan", "--why", "--cluster", "lumi", "--gpus", "3", "--time", "20d")
    text = " ".join(done.stdout.split())
    assert "only invited users can use partition bench; the job requests a time of 20 d, " in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--partition", "gpumedum", "--cluster", "roihu"], "did you mean 'gpumedium'?"),
        (["--cluster", "Lumi"], "did you mean 'lumi'?"),
        (["--gpus", "a100:2"], "`--gpus 2 --gpu-type a100`"),
        (["--time", "90"], "expected a unit, such as 90min"),
        (["--time", "12:00", "--cluster", "roihu"], "--time 12:00 as minutes and seconds: 12 min"),
    ],
)
def test_a_slip_names_what_was_meant(teho, arguments: list[str], words: str) -> None:
    result = teho("plan", *arguments, env={"COLUMNS": "200"})
    assert words in " ".join((result.stdout + result.stderr).split())


def test_slices_are_offered_before_a_whole_gpu(teho) -> None:
    result = teho("plan", "--gpu-memory", "5GiB", "--cluster", "narval", "--format", "json")
    options = json.loads(result.stdout)["options"]
    assert options[0]["gpu_type"] == "a100_1g.5gb"
    assert options[-1]["gpu_type"] == "a100"
    costs = [option["cost"]["amount"] for option in options]
    assert costs == sorted(costs)


def test_debug_of_each_subcluster_of_trillium_has_a_name(teho) -> None:
    shown = teho("clusters", "show", "trillium").stdout
    for name in ("debug (one GPU):", "debug (GPU nodes):", "debug (CPU nodes):"):
        assert shown.count(name) == 1


@pytest.mark.parametrize("columns", [60, 80])
def test_a_narrow_plan_keeps_the_cost_and_the_memory(
    teho: Teho, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    clusters = "--cluster=narval,aire,lumi,fir,nibi,rorqual,trillium,roihu"
    told = teho("plan", clusters, "--gpus", "4", "--time", "12h", "--", "train.py").stdout
    shown = told.splitlines()
    (heads,) = [line for line in shown if line.startswith("Cluster ")]
    assert heads.split()[-1] == "Cost"
    assert "Memory" in shown[shown.index(heads) - 1]
    (lumi,) = [line for line in shown if line.startswith("LUMI ") and "small-g" in line]
    assert "240  24 GPU-hours" in lumi
    assert ("Cores" in heads) == (columns == 80)
    table = shown[shown.index(heads) : shown.index(heads) + 13]
    assert len(table) == 13
    assert all(len(line) <= columns for line in table)


def test_a_warning_is_a_sentence(teho: Teho) -> None:
    words = ("--cluster", "narval", "--gpus", "4", "--time", "12h", "--", "train.py")
    shown = teho("plan", *words).stdout
    lines = [line.strip() for line in shown.splitlines()]
    begin = next(at for at, line in enumerate(lines) if line.startswith("! "))
    end = next(at for at, line in enumerate(lines) if line.startswith("→"))
    warning = " ".join(lines[begin:end])
    assert warning.startswith("! The job starts only one process for 4 GPUs.")
    assert warning.endswith("starts one process per GPU.")
