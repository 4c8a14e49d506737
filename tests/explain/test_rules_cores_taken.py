"""Cores that other processes keep busy."""

from __future__ import annotations

import msgspec
import pytest

from explain.scenario_parts import (
    FORBIDDEN,
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    kinds_of,
    scenario,
)
from teho.explain.rules.cpu import cores_taken_by_others
from teho.model.finding import Abstention, Severity

LOAD = {"load_1min": 7.0}


def made(used, busy, *, cores=2, **part):
    return scenario(
        NodePart(
            "login1", cores=cores, cores_used=used,
            signals={"cpu_busy_percent": busy, **LOAD}, **part,
        )
    )  # fmt: skip


def test_a_busy_login_node():
    finding = found(cores_taken_by_others, made(0.14, 100.0, scheduler=None))
    assert finding.sentence == "On average, other processes used 1.86 of the 2 cores on login1."
    assert finding.severity is Severity.WARNING
    assert figures(finding)["load average (login1)"] == 7.0
    assert finding.action.startswith("If this is a login node, run the program in a job.")
    assert "`ps -u $USER`" in finding.action


@pytest.mark.parametrize(
    ("scheduler", "words"), [("slurm", "`--exclusive`"), ("grid_engine", "cluster's support")]
)
def test_in_a_job(scheduler, words):
    action = found(cores_taken_by_others, made(0.14, 100.0, scheduler=scheduler)).action
    assert words in action
    assert "login node" not in action


def test_one_core():
    sentence = found(cores_taken_by_others, made(0.1, 100.0, cores=1)).sentence
    assert sentence == "On average, other processes used 0.90 of the 1 core on login1."


@pytest.mark.parametrize(("others", "count"), [(9.99, 0), (10.01, 1)])
def test_threshold_of_the_share(others, count):
    assert len(judged(cores_taken_by_others, made(20.0, 50 + 2.5 * others, cores=40))) == count


@pytest.mark.parametrize(("others", "count"), [(0.49, 0), (0.51, 1)])
def test_threshold_of_the_cores(others, count):
    assert len(judged(cores_taken_by_others, made(0.3, 100 * (0.3 + others), cores=1))) == count


@pytest.mark.parametrize(("busy", "severity"), [(89.9, Severity.REMARK), (90.0, Severity.WARNING)])
def test_threshold_of_full(busy, severity):
    assert found(cores_taken_by_others, made(1.0, busy, cores=8)).severity is severity


@pytest.mark.parametrize(("used", "busy"), [(0.14, 8.0), (0.0, 0.0), (1.9, 100.0), (40.0, 100.0)])
def test_an_idle_node_and_one_that_is_busy_with_the_program(used, busy):
    cores = 40 if used == 40 else 2
    assert judged(cores_taken_by_others, made(used, busy, cores=cores)) == []


@pytest.mark.parametrize(("busy", "count"), [(50.0, 0), (87.4, 0), (87.6, 1), (100.0, 1)])
def test_cores_that_are_not_the_job_s_may_be_busy(busy, count):
    """The job has 20 of 40 cores and is not bound: others may keep 20 busy, and 5 more."""
    run, summary = made(10.0, busy, cores=40)
    nodes = (msgspec.structs.replace(summary.nodes[0], cores=20),)
    summary = msgspec.structs.replace(summary, nodes=nodes)
    assert len(judged(cores_taken_by_others, (run, summary))) == count


def test_abstains_if_a_signal_is_missing():
    assert isinstance(judged(cores_taken_by_others, made(1.0, FORBIDDEN)), Abstention)
    assert isinstance(judged(cores_taken_by_others, made(UNSUPPORTED, 100.0)), Abstention)


def test_a_node_without_known_cores():
    assert judged(cores_taken_by_others, made(0.1, 100.0, cores=0)) == []


class TestGivingWay:
    def test_what_the_program_leaves_unused_is_explained_by_it(self):
        assert kinds_of(made(1.0, 100.0, cores=40)) == ["cores_taken_by_others"]

    def test_a_remark_explains_nothing(self):
        assert kinds_of(made(1.0, 50.0, cores=40)) == ["serial_program", "cores_taken_by_others"]

    def test_the_cores_of_a_gpu_node(self):
        part = NodePart(
            cores=4, cores_used=0.5, signals={"cpu_busy_percent": 98.0}, gpus=[gpu(8.0)]
        )
        assert "cpu_busy_gpu_idle" not in kinds_of(scenario(part))
