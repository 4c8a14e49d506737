"""Options that change only a line of a script: e-mails, errors, GPUs of a task, the account."""

from __future__ import annotations

import pytest
from script_parts import script_of

from teho.errors import InputError
from teho.schedulers.script.write import ScriptOptions


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("#SBATCH", "#$"))]


def test_errors_go_to_their_own_file() -> None:
    options = ScriptOptions(log="out.log", error_log="err.log")
    slurm = lines(script_of("narval", options).text)
    assert {"#SBATCH --output=out.log", "#SBATCH --error=err.log"} <= {*slurm}
    grid_engine = lines(script_of("arc4", options).text)
    assert {"#$ -o out.log", "#$ -e err.log"} <= {*grid_engine}
    assert "#$ -j y" not in grid_engine
    assert "#$ -j y" in lines(script_of("arc4", ScriptOptions(log="out.log")).text)


def test_a_path_with_a_colon_is_no_host_for_grid_engine() -> None:
    assert "#$ -e :a:b.log" in lines(script_of("arc4", ScriptOptions(error_log="a:b.log")).text)


def test_mails_are_sent_at_the_moments_that_were_named() -> None:
    options = ScriptOptions(mail="begin, END", mail_to="me@example.org")
    slurm = lines(script_of("narval", options).text)
    assert {"#SBATCH --mail-type=BEGIN,END", "#SBATCH --mail-user=me@example.org"} <= {*slurm}
    grid_engine = lines(script_of("arc4", options).text)
    assert {"#$ -m be", "#$ -M me@example.org"} <= {*grid_engine}
    assert "#$ -m a" in lines(script_of("arc4", ScriptOptions(mail="fail")).text)


@pytest.mark.parametrize("cluster", ["narval", "arc4"])
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (ScriptOptions(mail="start"), "--mail: 'start'; expected one or more of begin, end, fail"),
        (ScriptOptions(mail_to="me@example.org"), "--mail-to without --mail"),
    ],
)
def test_other_moments_are_refused(cluster: str, options: ScriptOptions, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        script_of(cluster, options)


def test_each_task_sees_only_its_own_gpu_if_asked() -> None:
    script = script_of("lumi", ScriptOptions(gpus_per_task=1), gpus=8, launcher="srun", account="p")
    assert "#SBATCH --gpus-per-task=1" in lines(script.text)
    assert any("cannot reach the GPUs of other tasks" in one for one in script.remarks)


@pytest.mark.parametrize(
    ("cluster", "each", "request_", "sentence"),
    [
        (
            "narval",
            1,
            {"gpus": 4},
            r"1 task and 4 GPUs on each node; expected --gpus-per-task 4\. Next: `--launch",
        ),
        (
            "narval",
            3,
            {"gpus": 4, "launcher": "srun"},
            "4 tasks and 4 GPUs on each node",
        ),
        ("narval", 0, {"gpus": 1}, "1 task and 1 GPU on each node; expected --gpus-per-task 1"),
        ("narval", 1, {"gpus": 0}, "1 task and 0 GPUs on each node; expected a job with GPUs"),
        ("arc4", 1, {"gpus": 1}, "expected a cluster with Slurm"),
    ],
)
def test_gpus_that_the_tasks_cannot_share_are_refused(
    cluster: str, each: int, request_: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        script_of(cluster, ScriptOptions(gpus_per_task=each), **request_)


def test_a_missing_account_is_a_placeholder_that_the_scheduler_refuses() -> None:
    script = script_of("lumi")
    assert "#SBATCH --account=<project>" in lines(script.text)
    assert any("replace <project>" in one for one in script.remarks)
    named = script_of("lumi", account="project_1")
    assert "#SBATCH --account=project_1" in lines(named.text)
    assert not any("<project>" in one for one in named.remarks)
    assert not any("account" in line for line in lines(script_of("narval").text))


def test_memory_for_each_gpu_or_core_is_summed_for_the_node() -> None:
    per_gpu = script_of("narval", gpus=4, memory_per_gpu_mib=10 * 1024)
    assert "#SBATCH --mem=40G" in lines(per_gpu.text)
    per_core = script_of("narval", gpus=0, cpus=8, memory_per_core_mib=2 * 1024)
    assert "#SBATCH --mem=16G" in lines(per_core.text)
    nodes = script_of("narval", gpus=8, nodes=2, memory_per_gpu_mib=10 * 1024)
    assert "#SBATCH --mem=40G" in lines(nodes.text)
