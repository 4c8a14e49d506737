"""Rules that were written for one node, on four nodes of eight GPUs: names and figures."""

from __future__ import annotations

import pytest

from explain.scenario_parts import (
    NodePart,
    figures,
    found,
    gpu,
    judged,
    repeated,
    scenario,
    step,
    task,
    untouched_gpu,
)
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.cpu import cores_unused, serial_program, too_many_threads
from teho.explain.rules.gpu import (
    gpu_invisible,
    gpu_low_use,
    gpu_never_used,
    gpu_one_idle,
    gpu_used_only_at_first,
)
from teho.explain.rules.memory import memory_near_limit, memory_overasked
from teho.model.allocation import Allocation
from teho.units import GIB

HOSTS = ("r01g01", "r01g02", "r01g03", "r01g04")
ALL = "r01g01, r01g02, r01g03 and r01g04"


def many(odd=None, place=(), **given):
    """Four nodes of eight busy GPUs, but for those on `place` (node, GPU), which are `odd`."""
    gpus = {host: [gpu() for _ in range(8)] for host in HOSTS}
    for host, number in place:
        gpus[host][number] = odd
    return scenario(*(NodePart(host, gpus=gpus[host], **given) for host in HOSTS))


def test_one_of_32_was_never_used():
    finding = found(gpu_never_used, many(untouched_gpu(), [("r01g03", 6)]))
    assert finding.sentence == "GPU 6 on r01g03 was never used."
    assert "`--gpus-per-node=8`" in finding.action
    assert "`srun --ntasks-per-node=8 teho launch -- CMD`" in finding.action


def test_a_whole_node_was_never_used():
    place = [("r01g04", number) for number in range(8)]
    finding = found(gpu_never_used, many(untouched_gpu(), place))
    assert finding.sentence == "GPUs 0–7 on r01g04 were never used."
    assert "with `--nodes=3`" in finding.action


def test_one_of_32_idled():
    finding = found(gpu_one_idle, many(gpu(2.0), [("r01g02", 5)]))
    assert finding.sentence == "GPU 5 on r01g02 was idle while 31 other GPUs worked."


def test_one_on_each_node_was_given_up():
    place = [(host, 7) for host in HOSTS]
    finding = found(gpu_used_only_at_first, many(gpu(repeated((90.0, 20), (0.0, 40))), place))
    assert finding.sentence.startswith(f"GPU 7 on each of {ALL} were used for the first 20 min")


def test_low_use_of_all():
    finding = found(gpu_low_use, many(gpu(20.0), [(host, n) for host in HOSTS for n in range(8)]))
    assert finding.sentence == f"GPUs 0–7 on each of {ALL} were busy only 20 % of the time."
    assert figures(finding)["GPU busy, mean (each of 32)"] == 20
    # 40 cores of a node for 8 GPUs, not 160 for 32.
    assert "num_workers=4," in finding.action


@pytest.mark.parametrize(
    ("rule", "given", "sentence"),
    [
        (
            cores_unused,
            {"cores_used": 8.0},
            f"The program kept 8 of 40 cores busy on each of {ALL}.",
        ),
        (
            serial_program,
            {"cores_used": 1.0},
            f"The program used only one of 40 cores on each of {ALL}.",
        ),
        (
            too_many_threads,
            {"signals": {"job_runnable_threads": 80.0}},
            f"On average, 80 threads competed for 40 cores on each of {ALL}.",
        ),
        (
            memory_near_limit,
            {"memory_peak": 350.0 * GIB},
            f"Memory use reached 97 % of the memory limit on each of {ALL}.",
        ),
        (
            memory_overasked,
            {"memory_peak": 100.0 * GIB},
            (
                f"On {ALL} the job used 100 GiB of the 360 GiB of memory that it requested "
                "on each node."
            ),
        ),
    ],
)
def test_a_finding_of_all_nodes_says_so(rule, given, sentence):
    made = scenario(*(NodePart(host, **given) for host in HOSTS))
    assert found(rule, made).sentence == sentence


def test_hidden_gpus_of_each_node():
    held = Allocation(scheduler="slurm", job_id="4711", cores_asked=40, gpus_held=8)
    parts = [NodePart(host, gpus=[gpu()], allocation=held) for host in HOSTS]
    finding = found(gpu_invisible, scenario(*parts))
    assert finding.sentence == f"The job has 8 GPUs on {ALL} each, but the program can see only 1."


@pytest.mark.parametrize(("ranks", "known"), [(range(8), False), (range(7), True)])
def test_gpus_of_other_tasks_are_not_called_hidden(ranks, known):
    """The recorder sees what its own task sees: one of eight, as `srun --gpus-per-task=1` does."""
    held = Allocation(scheduler="slurm", job_id="4711", cores_asked=40, gpus_held=8)
    part = NodePart(HOSTS[0], gpus=[gpu()], allocation=held, ranks=ranks)
    verdict = judged(gpu_invisible, scenario(part, step=step(len(ranks), HOSTS[0])))
    assert isinstance(verdict, list) is known
    if not known:
        assert "GPUs that the other tasks see of r01g01" in verdict.lacked


def test_the_largest_process_counts_on_its_own_node():
    """A step's own peak may be that of a process on any node; each task tells its own."""
    parts = [NodePart(host, memory_peak=100.0 * GIB) for host in HOSTS[:2]]
    tasks = [task(0, HOSTS[0], peak_process_bytes=340 * GIB), task(1, HOSTS[1])]
    made = scenario(*parts, step=step(2, *HOSTS[:2]), tasks=tasks, peak_process_bytes=340 * GIB)
    finding = found(memory_overasked, made)
    assert finding.sentence.startswith("On r01g02 the job used 100 GiB")


def test_nothing_is_found_if_all_is_well():
    findings, abstentions = judge_all(*many(power_limit_w=300.0), load_policy())
    assert findings == ()
    assert abstentions == ()


def test_a_node_that_died_early_is_not_judged_by_its_hour():
    seen = repeated((90.0, 10), (None, 50))
    parts = [NodePart(host, gpus=[gpu()] * 8) for host in HOSTS[:3]]
    parts.append(NodePart(HOSTS[3], gpus=[dict.fromkeys(gpu(), seen)] * 8, last_s=600.0))
    for rule in (gpu_low_use, gpu_used_only_at_first, gpu_one_idle):
        assert not isinstance(judged(rule, scenario(*parts)), list)
