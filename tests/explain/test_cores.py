"""How many cores the job has on a node, by what was recorded and by what the scheduler gave."""

from __future__ import annotations

import msgspec
import pytest

from explain.scenario_parts import NodePart, scenario, step
from teho.explain.cores import allocated_cores
from teho.model.allocation import Allocation


def count(seen, asked, *, scheduler="slurm", tasks=None, **environment):
    given = Allocation(scheduler=scheduler, cores_asked=asked)
    run, _ = scenario(NodePart("a", cores=seen, allocation=given), environment=environment)
    if tasks:
        run = msgspec.structs.replace(run, step=step(tasks, "a"))
    return allocated_cores(run, run.nodes[0])


@pytest.mark.parametrize(
    ("seen", "asked", "cores"),
    [
        (40, 40, 40),
        (40, None, 40),
        (40, 10, 10),  # not bound
        (1, 10, 10),  # bound to a part
        (20, 40, 20),  # one of two threads of each core
        (19, 40, 40),
        (21, 40, 40),
        (1, 2, 1),
    ],
)
def test_seen_and_asked(seen, asked, cores):
    assert count(seen, asked) == cores
    assert count(seen, asked, scheduler="grid_engine") == cores


@pytest.mark.parametrize("scheduler", [None, "local"])
def test_without_a_scheduler_what_was_seen_counts(scheduler):
    assert count(1, 10, scheduler=scheduler) == 1
    assert count(10, 4, scheduler=scheduler) == 4  # a cgroup's quota


def test_one_of_several_tasks():
    assert count(10, 40, SLURM_NTASKS="4") == 10
    assert count(10, 40, SLURM_NTASKS="4", SLURM_JOB_NUM_NODES="4") == 40
    assert count(10, 40, SLURM_NTASKS="4", tasks=4) == 40
