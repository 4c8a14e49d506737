"""GPUs and tasks of one run that do not have the same work, on both sides of the thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain import scenarios
from explain.scenario_parts import (
    BINS,
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    repeated,
    scenario,
    step,
    task,
)
from teho.explain.rules.job import rank_imbalance, task_imbalance
from teho.model.finding import Abstention, Severity
from teho.model.run import Clock

POWER = "gpu_power_w"
MEMORY = "gpu_memory_busy_percent"


def powers(*watts, **signals):
    return scenario(NodePart(gpus=[gpu(95.0, gpu_power_w=watt, **signals) for watt in watts]))


class TestRankImbalance:
    def test_names_gpu_node_and_rank(self):
        finding = found(rank_imbalance, scenarios.one_gpu_differs())
        assert finding.severity is Severity.WARNING
        assert finding.sentence == (
            "GPU 5 on r01g02 used 211 W, but the other 31 GPUs used 560 W to 595 W: the work is "
            "not equally divided."
        )
        evidence = figures(finding)
        label = "time in which the GPU differed much from the other GPUs (GPU 5 on r01g02)"
        assert evidence[label] == 100
        assert evidence["GPU power, median of the other GPUs"] == 575
        # Its busy share is the highest of all: that alone would have hidden it.
        assert evidence["GPU busy, mean (GPU 5 on r01g02)"] == 99
        assert evidence["GPU 5 on r01g02 is probably used by rank"] == "13"
        assert "`py-spy top --pid PID` on r01g02" in finding.action

    @pytest.mark.parametrize(("low", "count"), [(399.0, 1), (400.0, 0), (401.0, 0)])
    def test_threshold_of_power_below(self, low, count):
        assert len(judged(rank_imbalance, powers(500.0, 500.0, 500.0, low))) == count

    @pytest.mark.parametrize(("high", "count"), [(599.0, 0), (600.0, 0), (601.0, 1)])
    def test_threshold_of_power_above(self, high, count):
        assert len(judged(rank_imbalance, powers(500.0, 500.0, 500.0, high))) == count

    def test_one_that_works_more_than_the_others(self):
        sentence = found(rank_imbalance, powers(300.0, 290.0, 600.0, 300.0)).sentence
        assert sentence.startswith("GPU 2 on r01g01 used 600 W, but the other 3 GPUs used 290 W to")

    def test_of_two_the_one_that_works_less_is_named(self):
        sentence = found(rank_imbalance, powers(600.0, 200.0)).sentence
        assert sentence.startswith("GPU 1 on r01g01 used 200 W, but the other GPU used 600 W")

    @pytest.mark.parametrize(("bins", "count"), [(30, 0), (31, 1)])
    def test_threshold_of_time(self, bins, count):
        low = repeated((200.0, bins), (500.0, BINS - bins))
        assert len(judged(rank_imbalance, powers(500.0, 500.0, 500.0, low))) == count

    def test_time_counts_while_any_gpu_works(self):
        # Idle power differs from chip to chip, and proves nothing.
        busy = repeated((95.0, 10), (0.0, 50))
        gpus = [
            gpu(busy, gpu_power_w=repeated((500.0, 10), (idle, 50)))
            for idle in (60.0, 60.0, 60.0, 110.0)
        ]
        assert judged(rank_imbalance, scenario(NodePart(gpus=gpus))) == []

    @pytest.mark.parametrize(("work", "count"), [(24.9, 0), (25.0, 1)])
    def test_threshold_of_work(self, work, count):
        gpus = [gpu(work, gpu_power_w=watt) for watt in (500.0, 500.0, 500.0, 200.0)]
        assert len(judged(rank_imbalance, scenario(NodePart(gpus=gpus)))) == count

    @pytest.mark.parametrize(("busy", "count"), [(74.9, 1), (75.0, 0), (75.1, 0)])
    def test_threshold_of_busy(self, busy, count):
        gpus = [gpu(95.0), gpu(95.0), gpu(95.0), gpu(busy)]
        assert len(judged(rank_imbalance, scenario(NodePart(gpus=gpus)))) == count

    def test_busy_can_accuse_without_power(self):
        gpus = [gpu(busy, gpu_power_w=UNSUPPORTED) for busy in (95.0, 95.0, 40.0)]
        sentence = found(rank_imbalance, scenario(NodePart(gpus=gpus))).sentence
        assert sentence.startswith(
            "GPU 2 on r01g01 was busy 40 % of the time, but the other 2 GPUs were busy 95 % of the "
            "time:"
        )

    def test_busy_cannot_acquit_without_power(self):
        gpus = [gpu(95.0, gpu_power_w=UNSUPPORTED) for _ in range(4)]
        verdict = judged(rank_imbalance, scenario(NodePart(gpus=gpus)))
        assert isinstance(verdict, Abstention)
        assert verdict.lacked.startswith("GPU power of GPUs 0–3 on r01g01")

    @pytest.mark.parametrize(("share", "count"), [(39.9, 1), (40.0, 0)])
    def test_memory_takes_the_place_of_power(self, share, count):
        gpus = [
            gpu(95.0, gpu_power_w=UNSUPPORTED, gpu_memory_busy_percent=memory)
            for memory in (60.0, 60.0, share)
        ]
        verdict = judged(rank_imbalance, scenario(NodePart(gpus=gpus)))
        assert len(verdict) == count
        if count:
            assert verdict[0].sentence.startswith("GPU 2 on r01g01 used its memory 40 % of the")

    def test_unlike_models_are_not_compared(self):
        run, summary = powers(300.0, 600.0, 300.0, 600.0)
        (node,) = summary.nodes
        gpus = tuple(
            msgspec.structs.replace(
                one, device=msgspec.structs.replace(one.device, name=f"model {place % 2}")
            )
            for place, one in enumerate(node.gpus)
        )
        nodes = (msgspec.structs.replace(node, gpus=gpus),)
        assert judged(rank_imbalance, (run, msgspec.structs.replace(summary, nodes=nodes))) == []

    def test_gpus_of_the_same_model_are_named_as_such(self):
        run, summary = powers(500.0, 500.0, 200.0, 700.0)
        (node,) = summary.nodes
        last = node.gpus[3]
        last = msgspec.structs.replace(
            last, device=msgspec.structs.replace(last.device, name="another")
        )
        nodes = (msgspec.structs.replace(node, gpus=(*node.gpus[:3], last)),)
        made = (run, msgspec.structs.replace(summary, nodes=nodes))
        sentence = found(rank_imbalance, made).sentence
        assert "the other 2 GPUs of the same type used 500 W" in sentence

    def test_gaps_are_neither_low_nor_high(self):
        gappy = repeated((500.0, 20), (None, 20), (500.0, 20))
        gone = repeated((500.0, 31), (None, 29))
        assert judged(rank_imbalance, powers(500.0, 500.0, gappy, gone)) == []

    def test_a_gpu_that_was_hardly_seen_is_not_judged(self):
        seen = repeated((95.0, 20), (None, 40))
        lost = dict.fromkeys(gpu(), seen)
        verdict = judged(rank_imbalance, scenario(NodePart(gpus=[gpu(95.0), gpu(95.0), lost])))
        assert isinstance(verdict, Abstention)
        assert "recorded for only 20 min of 1 h" in verdict.lacked

    def test_several_at_once(self):
        finding = found(rank_imbalance, powers(500.0, 500.0, 500.0, 500.0, 500.0, 90.0, 110.0))
        assert finding.sentence.startswith(
            "GPUs 5 and 6 on r01g01 used 90 W to 110 W, but the other 5 GPUs used 500 W:"
        )

    def test_without_neighbours_the_question_does_not_arise(self):
        assert judged(rank_imbalance, powers(500.0)) == []


def ended(*ends, **given):
    tasks = [task(rank, after_s=after_s, **given) for rank, after_s in enumerate(ends)]
    return scenario(NodePart("r01g01"), step=step(len(ends), "r01g01"), tasks=tasks)


class TestTaskImbalance:
    def test_one_that_ends_late(self):
        finding = found(task_imbalance, ended(3000.0, 3600.0, 3000.0, 2990.0))
        assert finding.sentence == (
            "Rank 1 on r01g01 ended 10 min later than the median task (of 4 tasks)."
        )
        assert finding.severity is Severity.WARNING
        assert figures(finding) == {
            "time after which the first task ended": 2990.0,
            "time after which half of the tasks had ended": 3000.0,
            "time after which the last task ended": 3600.0,
        }

    def test_one_that_ends_early(self):
        finding = found(task_imbalance, ended(3600.0, 1800.0, 3600.0))
        assert finding.sentence == (
            "Rank 1 on r01g01 ended 30 min earlier than the median task (of 3 tasks)."
        )

    @pytest.mark.parametrize(("late_s", "count"), [(360.0, 0), (361.0, 1)])
    def test_threshold_of_the_end(self, late_s, count):
        made = ended(3000.0, 3000.0, 3000.0 + late_s)
        assert len(judged(task_imbalance, made)) == count

    def test_clocks_are_allowed_for(self):
        ahead = Clock(ahead_s=1200.0, uncertainty_s=0.01)
        parts = (NodePart("a"), NodePart("b", clock=ahead), NodePart("c"))
        tasks = [task(0, "a"), task(1, "b", after_s=4800.0), task(2, "c")]
        made = scenario(*parts, step=step(3, "a", "b", "c"), tasks=tasks)
        assert judged(task_imbalance, made) == []

    @pytest.mark.parametrize(
        ("cpu_s", "count"), [(1501.0, 0), (1500.0, 1), (5999.0, 0), (6000.0, 1)]
    )
    def test_threshold_of_cpu_time(self, cpu_s, count):
        tasks = [task(rank) for rank in range(3)] + [task(3, cpu_s=cpu_s)]
        made = scenario(NodePart(), step=step(4, "r01g01"), tasks=tasks)
        verdict = judged(task_imbalance, made)
        assert len(verdict) == count
        if count:
            assert verdict[0].severity is Severity.REMARK
            assert verdict[0].sentence.startswith("Rank 3 on r01g01 used ")
            assert verdict[0].sentence.endswith(
                "of CPU time, but the median of the 4 tasks is 50 min."
            )

    @pytest.mark.parametrize(("more_s", "count"), [(59.0, 0), (60.0, 1)])
    def test_threshold_of_little_cpu_time(self, more_s, count):
        tasks = [task(rank, cpu_s=10.0) for rank in range(3)] + [task(3, cpu_s=10.0 + more_s)]
        made = scenario(NodePart(), step=step(4, "r01g01"), tasks=tasks)
        assert len(judged(task_imbalance, made)) == count

    @pytest.mark.parametrize(
        "tasks",
        [
            [task(0, after_s=100.0)],
            [task(0, after_s=100.0), task(1, exit_code=1)],
            [task(0, after_s=100.0), task(1, signal=9)],
        ],
    )
    def test_it_takes_all_tasks_and_all_of_them_well(self, tasks):
        made = scenario(NodePart(), step=step(2, "r01g01"), tasks=tasks)
        assert judged(task_imbalance, made) == []

    def test_without_a_step_the_question_does_not_arise(self):
        assert judged(task_imbalance, scenario(NodePart())) == []
