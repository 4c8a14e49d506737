"""Whole scripts, cluster by launcher by shape; the rules behind them; a site's own templates."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from schedulers.script.script_parts import option_of, script_of
from show.golden import check as check_golden
from teho.clusters.catalogue import load_catalogue, load_cluster
from teho.errors import InputError
from teho.schedulers.script import render as script_templates
from teho.schedulers.script.write import ScriptOptions, Values, write_script

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "scripts"
ALL = ScriptOptions(
    record=True, stage=("data.tar", "labels.csv"), array="1-8%2",
    after=("11", "12"), signal_before_s=90, requeue=True, log="job.log",
)  # fmt: skip
LINES = {"lines": ("source ~/tools.sh",)}
PUHTI = {"account": "project_2001234", "time_s": 7200.0}
LUMI = {"account": "project_462000123", "partition": "standard-g"}
GOLDENS: dict[str, tuple[str, dict[str, object], ScriptOptions]] = {
    "puhti-plain-1-gpu": ("puhti", {**PUHTI}, ScriptOptions()),
    "puhti-torchrun-1-node": ("puhti", {**PUHTI, "gpus": 4, "launcher": "torchrun"},
                              ScriptOptions()),
    "puhti-torchrun-2-nodes": ("puhti", {**PUHTI, "gpus": 8, "launcher": "torchrun",
                                         "local_disk_gib": 100.0},
                               ScriptOptions(stage=("data.tar",))),
    "puhti-cpu": ("puhti", {**PUHTI, "gpus": 0, "cpus": 8, "memory_mib": 8704}, ScriptOptions()),
    "mahti-accelerate-2-nodes": ("mahti", {"gpus": 8, "launcher": "accelerate", "name": "big run"},
                                 ScriptOptions()),
    "mahti-accelerate-1-node": ("mahti", {"gpus": 2, "launcher": "accelerate"}, ScriptOptions()),
    "mahti-horovod-2-nodes": ("mahti", {"gpus": 8, "launcher": "horovod"},
                              ScriptOptions(framework="tensorflow")),
    "roihu-deepspeed-1-node": ("roihu", {"gpus": 4, "launcher": "deepspeed"}, ScriptOptions()),
    "roihu-deepspeed-2-nodes": ("roihu", {"gpus": 8, "launcher": "deepspeed"}, ScriptOptions()),
    "roihu-plain-2-nodes": ("roihu", {"gpus": 8, "nodes": 2, "command": ("./solver", "input")},
                            ScriptOptions()),
    "lumi-plain-1-gpu": ("lumi", {"account": "project_462000123"}, ScriptOptions()),
    "lumi-srun-2-nodes": ("lumi", {**LUMI, "gpus": 16, "launcher": "srun"}, ScriptOptions()),
    "lumi-torchrun-2-nodes": ("lumi", {**LUMI, "gpus": 16, "launcher": "torchrun"},
                              ScriptOptions(record=True)),
    "lumi-accelerate-2-nodes": ("lumi", {**LUMI, "gpus": 16, "launcher": "accelerate"},
                                ScriptOptions(signal_before_s=120, requeue=True)),
    "puhti-launch-2-nodes": ("puhti", {**PUHTI, "gpus": 8, "launcher": "launch"}, ScriptOptions()),
    "lumi-launch-2-nodes": ("lumi", {**LUMI, "gpus": 16, "launcher": "launch"},
                            ScriptOptions(record=True)),
    "lumi-launch-part-of-a-node": ("lumi", {**LUMI, "partition": "small-g", "gpus": 4,
                                            "launcher": "launch"}, ScriptOptions()),
    "narval-launch-1-node": ("narval", {"gpus": 4, "launcher": "launch"},
                             ScriptOptions(signal_before_s=60, requeue=True)),
    "arc4-launch-1-gpu": ("arc4", {"launcher": "launch"}, ScriptOptions(record=True)),
    "narval-srun-1-node": ("narval", {"gpus": 4, "launcher": "srun"},
                           ScriptOptions(signal_before_s=60)),
    "narval-srun-2-nodes-everything": ("narval", {"gpus": 8, "launcher": "srun",
                                                  "account": "def-someuser", "name": "all",
                                                  **LINES}, ALL),
    "narval-cpu": ("narval", {"gpus": 0, "cpus": 16, "memory_mib": 32000}, ScriptOptions()),
    "trillium-torchrun-2-nodes": ("trillium", {"gpus": 8, "launcher": "torchrun"},
                                  ScriptOptions()),
    "aire-plain-1-gpu": ("aire", {}, ScriptOptions()),
    "arc4-plain-1-gpu": ("arc4", {}, ScriptOptions()),
    "arc4-torchrun-1-node-everything": ("arc4", {"gpus": 4, "launcher": "torchrun", "name": "all",
                                                 "local_disk_gib": 80.0, **LINES}, ALL),
    "arc4-plain-2-nodes": ("arc4", {"gpus": 0, "nodes": 2, "command": ("mpirun", "./solver")},
                           ScriptOptions(signal_before_s=60, requeue=True)),
    "arc4-launch-2-nodes": ("arc4", {"gpus": 0, "cpus": 80, "launcher": "launch"},
                            ScriptOptions(record=True)),
    "arc4-cpu": ("arc4", {"gpus": 0, "cpus": 8, "memory_mib": 10 * 1024}, ScriptOptions()),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDENS)
def test_a_whole_script(name: str) -> None:
    cluster, request, options = GOLDENS[name]
    script = script_of(cluster, options, **request)
    check_golden(DATA / "clusters" / f"{name}.sh", script.text)


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in (DATA / "clusters").iterdir()} == set(GOLDENS)


def goldens() -> list[Path]:
    return sorted(DATA.rglob("*.sh"))


def test_bash_reads_every_script() -> None:
    for path in goldens():
        subprocess.run(["bash", "-n", path], check=True, timeout=60)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck_finds_nothing() -> None:
    # SC1090: the user's own environment is not here to be read.
    command = ["shellcheck", "--severity=warning", "--exclude=SC1090", "--format=gcc", *goldens()]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (result.stdout, result.returncode) == ("", 0)


def test_every_cluster_has_a_script_for_every_launcher_that_fits() -> None:
    for name, cluster in load_catalogue().items():
        launchers = ["plain", "launch", "torchrun", "accelerate", "deepspeed", "horovod"]
        for launcher in [*launchers, *(["srun"] if cluster.scheduler == "slurm" else [])]:
            # Few sites have a module with Horovod; a job may have its own.
            options = ScriptOptions(framework="none" if launcher == "horovod" else "")
            text = script_of(name, options, launcher=launcher).text
            assert "\n\n\n" not in text
            assert not re.search(r"[ \t]$", text, re.MULTILINE), text
            assert text.endswith("\n")


def directives(text: str) -> list[str]:
    return re.findall(r"^#(?:SBATCH|\$) (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("mib", "written"),
    [(65536, "64G"), (512, "512M"), (8000, "8000M"), (61500, "61500M"), (1, "1M")],
)
def test_memory_is_whole(mib: int, written: str) -> None:
    assert f"--mem={written}" in directives(script_of("lumi", account="p", memory_mib=mib).text)


@pytest.mark.parametrize(
    ("seconds", "slurm", "grid_engine"),
    [
        (3600, "1:00:00", "01:00:00"),
        (900.2, "0:15:01", "00:15:01"),
        (86400, "1-00:00:00", "24:00:00"),
        (129600, "1-12:00:00", "36:00:00"),
    ],
)
def test_time_is_written_as_the_scheduler_reads_it(
    seconds: float, slurm: str, grid_engine: str
) -> None:
    assert f"--time={slurm}" in directives(script_of("lumi", time_s=seconds).text)
    assert f"-l h_rt={grid_engine}" in directives(script_of("arc4", time_s=seconds).text)


def test_what_comes_by_itself_is_not_named() -> None:
    lines = directives(script_of("arc4", gpus=2).text)
    assert lines == ["-N job", "-cwd", "-l coproc_v100=2", "-l h_rt=01:00:00"]
    option = msgspec.structs.replace(option_of("lumi"), automatic=("cores", "memory"))
    text = write_script(option, load_cluster("lumi")).text
    assert not re.search("cpus-per-task|--mem|CPUS_PER_TASK", text)
    assert "export OMP_NUM_THREADS=$SLURM_CPUS_ON_NODE\n" in text


def test_memory_and_disk_are_divided_if_they_are_of_one_core() -> None:
    wanted = {"gpus": 0, "cpus": 8, "memory_mib": 12 * 1024, "local_disk_gib": 20.0}
    lines = directives(script_of("arc4", **wanted).text)
    assert {"-pe smp 8", "-l h_vmem=1536M", "-l disk=2.5G"} <= set(lines)


def test_disk_is_asked_for_as_the_site_does() -> None:
    assert "--gres=gpu:v100:2,nvme:100" in directives(
        script_of("puhti", gpus=2, local_disk_gib=100.0).text
    )
    assert "--gres=nvme:7" in directives(script_of("puhti", gpus=0, local_disk_gib=6.5).text)
    lines = directives(script_of("rorqual", local_disk_gib=400.0).text)
    assert {"--tmp=400G", "--gpus-per-node=h100:1"} <= set(lines)


def test_masks_only_for_whole_nodes_with_a_task_for_each_gpu() -> None:
    whole = {"gpus": 8, "partition": "standard-g"}
    assert "mask_cpu:0x00fe000000000000,0xfe00000000000000,0x0000000000fe0000," in (
        text := script_of("lumi", **whole, launcher="srun").text
    )
    assert 'srun --cpu-bind="$CPU_BIND" singularity' in text
    for other in (
        {**whole, "launcher": "torchrun"},
        {**whole, "launcher": "srun", "gpus": 4},
        {**whole, "launcher": "srun", "cpus_per_gpu": 6},
        {**whole, "launcher": "srun", "partition": "small-g"},
    ):
        assert "cpu-bind" not in script_of("lumi", **other).text


def test_several_nodes_of_a_container_get_its_variables() -> None:
    assert "FI_MR_CACHE_MONITOR" in script_of("lumi", gpus=16, launcher="torchrun").text
    assert "FI_MR_CACHE_MONITOR" not in script_of("lumi", gpus=8, launcher="torchrun").text
    own = ScriptOptions(framework="none")
    assert "FI_MR_CACHE_MONITOR" not in script_of("lumi", own, gpus=16, launcher="torchrun").text


@pytest.mark.parametrize(
    ("framework", "launcher", "command", "loaded"),
    [
        ("", "plain", ("python", "x.py"), "module load pytorch"),
        ("", "plain", ("python3.11", "x.py"), "module load pytorch"),
        ("", "torchrun", ("x.py",), "module load pytorch"),
        ("", "plain", ("./venv/bin/python", "x.py"), ""),
        ("", "srun", ("./solver",), ""),
        ("tensorflow", "plain", ("./solver",), "module load tensorflow"),
        ("none", "torchrun", ("x.py",), ""),
    ],
)
def test_software_follows_from_the_command(
    framework: str, launcher: str, command: tuple[str, ...], loaded: str
) -> None:
    options = ScriptOptions(framework=framework)
    text = script_of("puhti", options, launcher=launcher, command=command).text
    assert re.findall("module load .*", text) == ([loaded] if loaded else [])


def test_a_cluster_without_pytorch_loads_what_it_has() -> None:
    assert "module load miniforge\n" in script_of("aire").text


@pytest.mark.parametrize(
    ("launcher", "command", "called"),
    [
        ("torchrun", ("python", "x.py", "-a"), "x.py -a"),
        ("torchrun", ("x.py", "-a"), "x.py -a"),
        ("torchrun", ("python3", "-m", "pkg.train", "-a"), "--module pkg.train -a"),
        ("torchrun", ("python", "-X", "dev", "x.py"), "--no-python python -X dev x.py"),
        ("torchrun", ("python",), "--no-python python"),
        ("torchrun", ("./solver", "-a"), "--no-python ./solver -a"),
        ("accelerate", ("./solver", "-a"), "--no_python ./solver -a"),
        ("deepspeed", ("python", "x.py"), "x.py"),
    ],
)
def test_launchers_of_python_get_no_python(
    launcher: str, command: tuple[str, ...], called: str
) -> None:
    text = script_of("narval", gpus=4, launcher=launcher, command=command).text
    assert text.endswith(f" {called}\n")


def test_threads_never_exceed_cores_nor_fall_to_none() -> None:
    text = script_of("narval", gpus=4, launcher="torchrun", cpus=2).text
    assert "export OMP_NUM_THREADS=1\n" in text
    text = script_of("narval", gpus=4, launcher="torchrun").text
    assert "export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 4))\n" in text


def test_the_script_for_this_machine_has_only_the_command() -> None:
    option = msgspec.structs.replace(
        option_of("arc4", gpus=2, launcher="accelerate", lines=("cd work",)), scheduler="local"
    )
    script = write_script(option, load_cluster("arc4"))
    assert directives(script.text) == []
    assert "module" not in script.text
    assert "export OMP_NUM_THREADS=10\n" in script.text
    assert script.text.endswith(
        "accelerate launch --multi_gpu --num_processes=2 --num_machines=1"
        ' --main_process_port="$MASTER_PORT" train.py\n'
    )


@pytest.mark.parametrize(
    ("cluster", "changes", "options", "message"),
    [
        ("arc4", {}, ScriptOptions(stage=("a.tar",)), "--stage with 2 nodes on ARC4"),
        ("arc4", {"gpus_per_node": 1}, ScriptOptions(), "2 nodes on ARC4 with GPUs"),
        ("own", {}, ScriptOptions(), "2 nodes on ARC4; expected one node"),
        ("arc4", {"launcher": "torchrun"}, ScriptOptions(), "--launcher torchrun with 2 nodes"),
    ],
)
def test_what_several_nodes_of_grid_engine_do_not_have(
    cluster: str, changes: dict[str, object], options: ScriptOptions, message: str
) -> None:
    option, arc4 = option_of("arc4", gpus=0, nodes=2), load_cluster("arc4")
    if cluster == "own":
        arc4 = replace(arc4, dialect=replace(arc4.dialect, several_nodes=""))
    if "launcher" in changes:
        changes = {"request": replace(option.request, **changes)}
    with pytest.raises(InputError) as caught:
        write_script(replace(option, **changes), arc4, options)
    assert message in str(caught.value)


def test_staging_needs_a_disk() -> None:
    staged = ScriptOptions(stage=("a.tar",))
    with pytest.raises(InputError, match="--local-disk"):
        script_of("puhti", staged)
    for name in ("lumi", "trillium"):
        script = script_of(name, staged)
        assert "a.tar" not in script.text
        assert "no local disk" in " ".join(script.remarks)
    assert '-C "$SLURM_TMPDIR"' in script_of("narval", staged).text


def test_a_variable_in_a_word_is_reported_to_stay_text() -> None:
    script = script_of(
        "puhti", command=("python", "x.py", "$LOCAL_SCRATCH/a"), local_disk_gib=1.0, account="p"
    )
    assert "$LOCAL_SCRATCH" in script.remarks[0]
    for command in (("bash", "-c", "ls $LOCAL_SCRATCH"), ("python", "$LOCAL", "SLURM_JOB_ID")):
        assert not script_of("puhti", command=command, local_disk_gib=1.0, account="p").remarks
    assert script_of("puhti", command=("echo", "${SLURM_JOB_ID}"), account="p").remarks


@pytest.mark.parametrize(
    ("cluster", "request_", "options", "words"),
    [
        ("lumi", {"command": ()}, {}, ["without a command", "-- COMMAND"]),
        ("lumi", {"command": ("",)}, {}, ["without a command"]),
        ("puhti", {}, {"framework": "pytroch"}, ["--framework", "did you mean 'pytorch'"]),
        ("lumi", {}, {"array": "1-"}, ["--array", "1-10"]),
        ("lumi", {}, {"array": "1-4%"}, ["--array"]),
        ("arc4", {}, {"array": "1,3"}, ["--array", "one range"]),
        ("arc4", {}, {"array": "0-3"}, ["--array", "begins at 1"]),
        ("lumi", {}, {"after": ("1:2",)}, ["--after", "1:2"]),
        ("lumi", {}, {"signal_before_s": 3600.0}, ["--signal", "3599"]),
        ("lumi", {}, {"signal_before_s": 0.0}, ["--signal", "1 to"]),
        ("lumi", {"account": "a\nb"}, {}, ["--account"]),
    ],
)
def test_what_cannot_be_written_is_refused(
    cluster: str, request_: dict[str, object], options: dict[str, object], words: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        script_of(cluster, ScriptOptions(**options), **request_)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)


def test_only_slurm_has_several_nodes() -> None:
    option = msgspec.structs.replace(option_of("narval", gpus=8), scheduler="local")
    with pytest.raises(InputError, match="2 nodes"):
        write_script(option, load_cluster("narval"))


# A site's own templates.


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setenv("TEHO_TEMPLATES", f"/nowhere:{folder}")
    return folder


def test_a_sites_template_hides_a_users_and_a_users_tehos_own(site: Path, tmp_path: Path) -> None:
    own = tmp_path / "config" / "teho" / "templates"
    own.mkdir(parents=True)
    (own / "slurm.sh.j2").write_text("user\n")
    assert script_of("lumi").text == "user\n"
    (site / "slurm.sh.j2").write_text("site: {{ program }}\n")
    assert script_of("lumi").text == "site: python train.py\n"
    assert script_of("arc4").text.startswith("#!/bin/bash -l\n")


def test_a_template_can_build_on_tehos_own_parts(site: Path) -> None:
    (site / "slurm.sh.j2").write_text(
        '{% import "launchers.j2" as shared with context %}\n{{ shared.one_node() | trim }}\n'
    )
    text = script_of("lumi", gpus=2, launcher="torchrun").text
    assert text == "torchrun --standalone --nnodes=1 --nproc_per_node=2 train.py\n"


@pytest.mark.parametrize(
    ("template", "line", "words"),
    [
        ("one\n{% if %}\n", 2, ["Expected an expression"]),
        ("one\ntwo\n{{ nods }}\n", 3, ["'nods' is undefined"]),
        ("{{ nodes.x.y }}\n", 1, ["has no attribute 'x'"]),
        ("one\n{{ nodes + title }}\n", 2, ["unsupported operand"]),
        ('one\n{% include "parts.j2" %}\n', 2, ["no template 'parts.j2'"]),
    ],
)
def test_a_mistake_in_a_template_is_named_with_its_line(
    site: Path, template: str, line: int, words: list[str]
) -> None:
    path = site / "slurm.sh.j2"
    path.write_text(template)
    with pytest.raises(InputError) as caught:
        script_of("lumi")
    assert f"{path}:{line}: " in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_template_that_is_no_text_is_refused(site: Path) -> None:
    (site / "slurm.sh.j2").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        script_of("lumi")


def test_a_scheduler_without_a_template_is_refused() -> None:
    with pytest.raises(InputError, match=r"no template 'pbs.sh.j2'"):
        script_templates.render("pbs.sh.j2", {})


def test_the_page_lists_every_value_of_a_template() -> None:
    page = (ROOT / "docs" / "scripts.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(Values.__struct_fields__) <= listed
