"""Scripts with `teho launch`: short, for what they leave out is what it sets; which cluster it is
told to be on; and how it is called where there is no srun."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import msgspec
import pytest

from schedulers.script.script_parts import environment, option_of, put_stubs, script_of
from support import TEHO
from teho.cli.group import teho as command_line
from teho.clusters.catalogue import cluster_files, load_cluster
from teho.launch.binding import physical_cores
from teho.schedulers.script.launch_site import launch_site
from teho.schedulers.script.write import ScriptOptions, write_script
from teho.schedulers.site import find_site

ROOT = Path(__file__).parents[3]
WHOLE = {"account": "project_462000123", "partition": "standard-g", "gpus": 16}


def test_what_teho_launch_sets_is_not_in_the_script() -> None:
    sets = "OMP_NUM_THREADS|MASTER_|mask_cpu|mkdir|FI_MR|MIOPEN|RANK|bash -c|scontrol"
    assert set(re.findall(sets, script_of("lumi", **WHOLE, launcher="srun").text)) == {
        *sets.split("|")
    }
    text = script_of("lumi", **WHOLE, launcher="launch").text
    assert re.findall(sets, text) == []
    assert text.endswith("\nsrun teho launch -- singularity run $SIF python train.py\n")


def test_a_recorder_is_before_it() -> None:
    options = ScriptOptions(record=True, teho=("/my venv/bin/python", "-m", "teho"))
    text = script_of("puhti", options, gpus=2, launcher="launch").text
    teho = "'/my venv/bin/python' -m teho"
    assert text.endswith(f"\nsrun {teho} run -- {teho} launch -- python train.py\n")


def test_srun_gives_each_task_its_cores_and_nothing_binds_them() -> None:
    text = script_of("lumi", **WHOLE, launcher="launch").text
    assert "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n" in text
    assert "bind" not in text.replace("singularity-bindings", "")


def exported(text: str) -> dict[str, str]:
    """Return what of a script `teho launch` finds its cluster by, as bash has it."""
    lines = re.findall(r"^export TEHO_\w+=.*$", text, re.MULTILINE)
    shown = subprocess.run(
        ["bash", "-c", "\n".join([*lines, "env -0"])],
        env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    known = dict(line.split("=", 1) for line in shown.split("\0") if "=" in line)
    return {name: value for name, value in known.items() if name.startswith("TEHO_")}


@pytest.mark.parametrize("cluster", ["puhti", "lumi", "narval", "arc4"])
def test_tehos_own_cluster_is_passed_by_its_name(cluster: str) -> None:
    told = exported(script_of(cluster, launcher="launch").text)
    assert told == {"TEHO_CLUSTER": cluster}
    assert find_site(told, "nowhere") == launch_site(load_cluster(cluster))


def own_file(home: Path, old: str, new: str, name: str = "lumi") -> None:
    """Write a cluster's file of the user's own: LUMI's, with one thing changed."""
    folder = home.parent / "config" / "teho" / "clusters"
    folder.mkdir(parents=True)
    text = cluster_files({"XDG_CONFIG_HOME": "/nonexistent"})["lumi"].read_text()
    assert old in text
    changed = text.replace(old, new).replace('name = "lumi"', f'name = "{name}"', 1)
    (folder / f"{name}.toml").write_text(changed)


@pytest.mark.parametrize("name", ["lumi", "ours"])
def test_a_cluster_of_the_users_own_is_passed_whole(name: str, home: Path) -> None:
    own_file(home, 'userfaultfd"', '''it's $HOME \\"or\\" `not`"''', name)
    text = script_of(name, launcher="launch", account="p", partition="small-g").text
    told = exported(text)
    assert set(told) == {"TEHO_SITE"}
    site = find_site(told, "nowhere")
    assert site == json.loads(told["TEHO_SITE"]) == launch_site(load_cluster(name))
    assert site["generations"][0]["variables"]["FI_MR_CACHE_MONITOR"] == 'it\'s $HOME "or" `not`'


def test_a_file_that_changes_nothing_for_launch_goes_by_its_name(home: Path) -> None:
    own_file(home, 'title = "LUMI"', 'title = "Our LUMI"')
    text = script_of("lumi", launcher="launch", account="p").text
    assert "# A job for Our LUMI." in text
    assert exported(text) == {"TEHO_CLUSTER": "lumi"}


def test_only_launch_gets_the_cluster() -> None:
    assert exported(script_of("lumi", **WHOLE, launcher="srun").text) == {}


def test_on_this_machine_it_is_launch_and_the_command() -> None:
    option = msgspec.structs.replace(
        option_of("puhti", launcher="launch", gpus=2), scheduler="local"
    )
    script = write_script(option, load_cluster("puhti"), ScriptOptions(record=True))
    assert script.text == (
        "#!/bin/bash\n"
        "# A job for this machine. Run this script with: bash FILE\n"
        "\n"
        "# The program.\n"
        "teho run -- teho launch -- python train.py\n"
    )
    (remark,) = script.remarks
    assert remark == (
        "the program starts once and sees all 2 GPUs. To start a process for each GPU on this "
        "machine, use `-- torchrun train.py`"
    )
    one = msgspec.structs.replace(option_of("puhti", launcher="launch"), scheduler="local")
    assert write_script(one, load_cluster("puhti")).remarks == ()


def test_on_grid_engine_the_threads_are_the_slots(tmp_path: Path) -> None:
    # Nothing keeps a job of Grid Engine on cores of its own: it may run on all of the machine's.
    stubs = put_stubs(tmp_path / "stubs")
    (stubs / "teho").write_text(f'#!/bin/bash\nexec {shlex.join(TEHO)} "$@"\n')
    options = ScriptOptions(framework="none")
    command = ("bash", "-c", 'printf "%s\\n" "$OMP_NUM_THREADS $RANK $WORLD_SIZE" > "$WRITTEN"')
    script = script_of("arc4", options, launcher="launch", command=command)
    for slots in (1, 10**6):
        subprocess.run(
            ["bash", "--noprofile", "-c", script.text],
            env={**environment(stubs, tmp_path / "written"), "NSLOTS": str(slots)},
            check=True,
            timeout=60,
        )
        real = len(physical_cores(frozenset(os.sched_getaffinity(0))))
        assert (tmp_path / "written").read_text() == f"{min(slots, real)} 0 1\n"


def test_the_page_shows_what_its_command_writes(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    page = (ROOT / "docs" / "scripts.md").read_text()
    shown = re.search(r"\$ teho (plan .*?) > job\.sh\n.*?```bash\n(.*?)```", page, re.DOTALL)
    assert shown
    arguments = shlex.split(shown.group(1).replace("\\\n", " "))
    command_line.main(arguments, standalone_mode=False)
    assert capsysbinary.readouterr().out.decode() == shown.group(2)
