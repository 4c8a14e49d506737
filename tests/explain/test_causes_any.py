"""Causes in programs of any kind: evaluation, ranks, threads, growth, debug modes, waits."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import (
    LOOP,
    NODE,
    loader,
    of_library,
    of_python,
    own,
    process,
    seen,
    watched,
)
from explain.scenario_parts import UNSUPPORTED, NodePart, figures, found, gpu, judged, scenario
from teho.explain import good_use as use
from teho.explain.good_use import main_loss
from teho.explain.policy import load_policy
from teho.explain.rules.cpu import (
    backward_long,
    batch_tiny,
    debug_mode,
    generated_without_cache,
    product_on_one_core,
    table_gradient_dense,
    threads_in_turn,
    waits_long,
)
from teho.explain.rules.job import (
    evaluation_long,
    ranks_wait_for_each_other,
    steps_slow_down,
    workers_uneven,
)
from teho.explain.shared_thresholds import GOOD_USE
from teho.model.finding import Severity
from teho.model.in_source import CostlyOption
from teho.model.run import ProgramUse
from teho.model.stack import Frame, State
from teho.model.watched import Progress, Wait
from teho.units import MIB

IDLE = [NodePart(NODE, cores=8, cores_used=1.0)]
BUSY = [NodePart(NODE, cores=8, cores_used=7.0)]


def good_use(summary):
    return use.good_use(summary, load_policy().thresholds[GOOD_USE])


class TestEvaluationLong:
    @staticmethod
    def made(wall_s, **facts):
        stack = seen((own("loss(model(x), y)", 50, "validate"), own("validate()", 31)), wall_s)
        return watched(process(stack, **facts))

    @pytest.mark.parametrize(
        ("wall_s", "severity"),
        [
            (24.9, None),
            (25.0, Severity.REMARK),
            (35.0, Severity.WARNING),
            (60.0, Severity.CRITICAL),
        ],
    )
    def test_thresholds(self, wall_s, severity):
        findings = judged(evaluation_long, self.made(wall_s))
        assert [one.severity for one in findings] == ([severity] if severity else [])

    @pytest.mark.parametrize(("listed_s", "is_named"), [(30.0, True), (15.0, False)])
    def test_what_takes_most_of_it_is_named(self, listed_s, is_named):
        below = own("validate()", 31)
        stacks = (
            seen((own("torch.tensor(row.tolist())", 54, "validate"), below), listed_s),
            seen((own("model(x)", 50, "validate"), below), 50.0 - listed_s),
        )
        (finding,) = judged(evaluation_long, watched(process(*stacks)))
        named = (
            "Most of this time was spent on converting between Python lists and arrays "
            "(train.py:54)."
        )
        assert (named in finding.sentence) is is_named
        assert finding.action.startswith("Keep the numbers in one array") is is_named

    @pytest.mark.parametrize(
        ("file", "function"),
        [("torch/optim/lbfgs.py", "LBFGS._directional_evaluate"),
         ("scipy/optimize/_differentiable_functions.py", "ScalarFunction.evaluate")],
    )  # fmt: skip
    def test_an_optimizer_evaluates_what_it_minimises(self, file, function):
        frames = (own("loss.backward()", 67, "closure"), of_library(file, function), own("step()"))
        assert judged(evaluation_long, watched(process(seen(frames, 80.0)))) == []

    def test_a_program_without_steps_may_only_evaluate(self):
        assert judged(evaluation_long, self.made(90.0, progress=())) == []


class TestRanks:
    @staticmethod
    def made(*shares, world=2):
        ranks = [
            process(
                seen((own("dist.all_reduce(grad)"),), share),
                pid=10 + rank,
                torch={"rank": rank, "world_size": world},
            )
            for rank, share in enumerate(shares)
        ]
        return watched(*ranks)

    def test_all_exchange(self):
        finding = found(ranks_wait_for_each_other, self.made(55.0, 60.0))
        assert finding.sentence == "The ranks exchanged data for 58 % of the time."

    @pytest.mark.parametrize(("least", "is_uneven"), [(41.0, False), (40.0, True), (2.0, True)])
    def test_one_has_more_work(self, least, is_uneven):
        finding = found(ranks_wait_for_each_other, self.made(60.0, least))
        assert ("Rank 1 made the other ranks wait" in finding.sentence) is is_uneven

    def test_without_steps_the_parts_are_unequal(self):
        waits = process(
            seen((own("dist.all_reduce(found)"),), 48.0), pid=10, parent_pid=5, progress=()
        )
        works = process(pid=11, parent_pid=5, progress=())
        beside = process(pid=12, parent_pid=5, wall_s=20.0, progress=())  # too short for a rank
        finding = found(ranks_wait_for_each_other, watched(waits, works, beside))
        assert finding.sentence == (
            "Process 11 made the other ranks wait for up to 48 % of the time: process 11 has "
            "more work."
        )
        assert "`parts[rank::world_size]`" in finding.action

    @pytest.mark.parametrize(("share", "count"), [(14.9, 0), (15.0, 1)])
    def test_threshold(self, share, count):
        assert len(judged(ranks_wait_for_each_other, self.made(share, share))) == count

    @pytest.mark.parametrize(
        ("line", "advised"),
        [
            ("dist.all_gather(parts, u)", "`dist.isend("),
            ("dist.all_reduce(parameter.grad)", "`dist.all_reduce(flat)`"),
            ("loss.backward()", "`with model.no_sync():`"),
        ],
    )
    def test_the_advice_is_for_the_call(self, line, advised):
        ranks = [
            process(
                seen((of_library("torch/distributed/distributed_c10d.py", "f"), own(line)), 60.0),
                pid=10 + rank, torch={"rank": rank},
            )
            for rank in range(2)
        ]  # fmt: skip
        finding = found(ranks_wait_for_each_other, watched(*ranks))
        assert advised in finding.action

    @staticmethod
    def slept(own_line, slept_s, state=State.SLEEPING, *, of_others=0.0, exchanged_s=55.0):
        """Return two ranks: rank 1 waits at this line, and exchanges for less time."""
        exchange = own("dist.all_reduce(p.grad)", 43)
        others = [seen((own_line,), of_others, state)] if of_others else []
        return watched(
            process(
                seen((exchange,), 80.0), *others, pid=10, torch={"rank": 0, "world_size": 2}
            ),
            process(
                seen((exchange,), exchanged_s), seen((own_line,), slept_s, state), pid=11,
                torch={"rank": 1, "world_size": 2},
            ),
        )  # fmt: skip

    def test_the_rank_that_is_waited_for_sleeps(self):
        made = self.slept(own("time.sleep(1.5)", 65), 20.0)
        finding = found(ranks_wait_for_each_other, made)
        assert finding.sentence == (
            "Rank 1 made the other ranks wait for up to 25 % of the time: rank 1 sleeps in "
            "`time.sleep(1.5)` (train.py:65)."
        )
        assert "`dist.barrier()`" in finding.action
        assert finding.action.endswith("Or check for the event more often than every 1.5 s.")
        assert figures(finding)["time spent on sleeping (rank 1)"] == 20.0
        assert figures(finding)["slowest line"] == "train.py:65  time.sleep(1.5)"
        assert finding.regain_percent == (7.5, 25.0)

    def test_a_sleep_of_unknown_length(self):
        finding = found(ranks_wait_for_each_other, self.slept(own("", 65), 20.0))
        assert finding.sentence.endswith("rank 1 sleeps at train.py:65.")
        assert finding.action.endswith("Or check for the event more often than now.")

    @pytest.mark.parametrize(
        ("state", "words"),
        [
            (State.DISK, "waits for the disk"), (State.NETWORK, "waits for the network"),
            (State.PROCESS, "waits for another process"), (State.LOCK, "waits for a lock"),
        ],
    )  # fmt: skip
    def test_it_waits_for_something_else(self, state, words):
        finding = found(ranks_wait_for_each_other, self.slept(own("get()", 65), 20.0, state))
        assert finding.sentence.endswith(f"rank 1 {words} in `get()` (train.py:65).")
        assert "rank 1" in finding.action
        assert "Check w" in finding.action

    @pytest.mark.parametrize(
        ("slept_s", "of_others", "sleeps"),
        [
            (12.6, 0.0, True), (12.4, 0.0, False),  # most of 25 %
            (20.0, 15.0, False),  # all ranks sleep
        ],
    )  # fmt: skip
    def test_mainly_working_it_has_more_work(self, slept_s, of_others, sleeps):
        made = self.slept(own("time.sleep(1.5)", 65), slept_s, of_others=of_others)
        finding = found(ranks_wait_for_each_other, made)
        assert ("sleeps in" in finding.sentence) is sleeps
        assert finding.sentence.endswith("more work in each step.") is not sleeps


class TestWorkersUneven:
    @staticmethod
    def made(*worked_s, waits=State.LOCK):
        """Return a pool whose workers work for these times of 100 s."""
        wait = seen((own("pool.map(trace, halves)"),), 95.0, waits)
        loop = of_python("multiprocessing/pool.py", "worker")
        idle = (of_python("multiprocessing/queues.py", "SimpleQueue.get"), loop)
        workers = [
            process(
                seen((own("trace(half)", 9), loop), work_s),
                seen(idle, 100.0 - work_s, State.LOCK),
                pid=11 + number,
                parent_pid=10,
                progress=(),
            )
            for number, work_s in enumerate(worked_s)
        ]
        return watched(process(wait, progress=()), *workers)

    def test_sentence(self):
        finding = found(workers_uneven, self.made(90.0, 10.0))
        assert finding.sentence == (
            "One of 2 worker processes did 90 % of the work while the other waited."
        )
        assert finding.regain_percent == (20.0, 40.0)

    def test_large_parts_are_named(self):
        _, summary = self.made(90.0, 10.0)
        (main,) = summary.program.mains
        option = CostlyOption(name="tasks_in_large_parts", at=own("chunksize=n // 2", 20))
        one = msgspec.structs.replace(main.process, costly_options=(option,))
        finding = found(workers_uneven, watched(one, *main.children))
        assert finding.sentence == (
            "One of 2 worker processes did 90 % of the work while the other waited: "
            "`chunksize=n // 2` at train.py:20 gives each worker many tasks at once."
        )
        assert finding.action.startswith("Use `chunksize=1` instead of `chunksize=n // 2` at ")

    def test_the_call_that_makes_one_part_for_each_worker_is_named(self):
        _, summary = self.made(90.0, 10.0)
        (main,) = summary.program.mains
        call = own("np.array_split(rows, WORKERS, axis=0)", 48)
        words = {"items": "rows", "parts": "2"}
        option = CostlyOption(name="parts_of_equal_length", at=call, words=words)
        one = msgspec.structs.replace(main.process, costly_options=(option,))
        finding = found(workers_uneven, watched(one, *main.children))
        assert finding.sentence.endswith(
            "waited: perhaps train.py:48 makes one part for each worker."
        )
        assert "`np.array_split(rows, 16 * (2))`" in finding.action

    @pytest.mark.parametrize(("least", "count"), [(71.0, 0), (69.0, 1)])
    def test_threshold(self, least, count):
        assert len(judged(workers_uneven, self.made(90.0, least))) == count

    def test_more_workers_than_cores_cannot_work_at_once(self):
        assert judged(workers_uneven, self.made(90.0, *(10.0,) * 8)) == []

    def test_a_main_process_that_works_too(self):
        assert judged(workers_uneven, self.made(90.0, 10.0, waits=State.NATIVE)) == []


class TestMainProcess:
    def test_of_a_pool_is_the_process_that_created_it(self):
        _, summary = TestWorkersUneven.made(90.0, 95.0)
        assert [main.process.pid for main in summary.program.mains] == [10]

    def test_short_children_are_not_the_program(self):
        wait = seen((own("time.sleep(1.5)"),), 100.0, State.SLEEPING)
        children = [
            process(wall_s=10.0, pid=20 + number, parent_pid=10, progress=()) for number in (0, 1)
        ]
        _, summary = watched(process(wait, progress=()), *children)
        assert [main.process.pid for main in summary.program.mains] == [10]

    def test_a_program_below_a_launcher_is_the_program(self):
        wait = seen((of_python("subprocess.py", "Popen.wait"),), 100.0, State.PROCESS)
        launcher = process(wait, progress=())
        child = process(wall_s=98.0, pid=11, parent_pid=10, progress=())
        _, summary = watched(launcher, child)
        assert [main.process.pid for main in summary.program.mains] == [11]


class TestThreadsInTurn:
    @staticmethod
    def made(wall_s, used=1.0, state=State.THREADS, **facts):
        wait = of_python("threading.py", "Condition.wait")
        result = of_python("concurrent/futures/_base.py", "Future.result")
        stack = seen((wait, result, own("pool.map(work, items)")), wall_s, state)
        parts = [NodePart(NODE, cores=8, cores_used=used)]
        return watched(process(stack, **facts), parts=parts)

    @pytest.mark.parametrize(("wall_s", "count"), [(29.0, 0), (31.0, 1)])
    def test_threshold_of_the_time(self, wall_s, count):
        assert len(judged(threads_in_turn, self.made(wall_s))) == count

    @pytest.mark.parametrize(("used", "count"), [(0.4, 0), (1.3, 1), (1.4, 0)])
    def test_threshold_of_the_cores(self, used, count):
        assert len(judged(threads_in_turn, self.made(80.0, used))) == count

    @staticmethod
    def with_lock(held_s, free_s, used=1.0):
        """Return a run whose threads hold a lock of the program for a part of the time."""
        wait = of_python("concurrent/futures/_base.py", "Future.result")
        main = (Frame("<thread>", "", 0, ""), wait, own("pool.map(work, items)"))
        inside, outside = own("unpack(f)", 45, "load"), own("mean(x)", 60, "mean")
        stacks = [
            seen((line, *main), wall_s, State.THREADS)
            for line, wall_s in ((inside, held_s), (outside, free_s))
        ]
        option = CostlyOption(
            name="lock_held",
            at=own("with self.lock", 43, "load"),
            lines=(inside,),
        )
        one = process(*stacks, costly_options=(option,))
        return watched(one, parts=[NodePart(NODE, cores=2, cores_used=used)])

    @pytest.mark.parametrize(("used", "count"), [(0.4, 0), (1.4, 1), (1.6, 0)])
    def test_cores_of_a_lock(self, used, count):
        assert len(judged(threads_in_turn, self.with_lock(70.0, 20.0, used))) == count

    def test_a_lock_of_the_program(self):
        finding = found(threads_in_turn, self.with_lock(70.0, 20.0))
        assert finding.sentence == (
            "One thread at a time held the lock of `with self.lock` at train.py:43, for 70 % of "
            "the run time, mostly for `unpack(f)` at train.py:45. The other threads waited for the "
            "lock."
        )
        assert finding.regain_percent == (17.5, 35.0)
        assert finding.action.startswith("Move `unpack(f)` at train.py:45, with the lines that ")
        assert "In the block of `with self.lock` at train.py:43, keep only" in finding.action

    @pytest.mark.parametrize(("held_s", "is_lock"), [(46.0, True), (44.0, False)])
    def test_threshold_of_the_lock(self, held_s, is_lock):
        finding = found(threads_in_turn, self.with_lock(held_s, 90.0 - held_s))
        assert ("held the lock" in finding.sentence) is is_lock

    def test_native_threads_are_not_python_threads(self):
        stack = seen((own("a @ b"),), 80.0, State.THREADS)
        assert judged(threads_in_turn, watched(process(stack), parts=IDLE)) == []


class TestStepsSlowDown:
    @staticmethod
    def paced(first, last, count=12):
        """Return the progress of a run whose steps per interval fall evenly."""
        steps, found = 100.0, []
        for number in range(count):
            steps += 10 * (first + (last - first) * number / (count - 1))
            found.append(Progress(steps=round(steps), first_s=101.0, last_s=105.0 + 8 * number))
        return found

    @pytest.mark.parametrize(("last", "count"), [(100.0, 0), (75.0, 0), (40.0, 1)])
    def test_steps(self, last, count):
        made = watched(process(progress=self.paced(100.0, last)))
        assert len(judged(steps_slow_down, made)) == count

    @pytest.mark.parametrize(("core_s", "count"), [(0.0, 1), (20.0, 1), (60.0, 0)])
    def test_other_programs_that_take_the_core_are_no_growth(self, core_s, count):
        parts = tuple(
            (
                seen((own("loss.backward()"),), 100.0 - waited_s),
                seen((own("loss.backward()"),), waited_s, State.CORE),
            )
            for waited_s in (0.0, 0.0, core_s / 2, core_s)
        )
        made = watched(process(progress=self.paced(100.0, 40.0), parts=parts))
        assert len(judged(steps_slow_down, made)) == count

    @staticmethod
    def quarters(*shares):
        line = own("scores = auc(all_labels, all_scores)", 60, "log")
        rest = own("loss.backward()", 12)
        return tuple((seen((line,), share), seen((rest,), 100 - share)) for share in shares)

    def test_a_line_that_grows(self):
        parts = self.quarters(10.0, 35.0, 55.0, 70.0)
        stacks = [one for part in parts for one in part]
        made = watched(process(*stacks, wall_s=400.0, progress=(), parts=parts))
        finding = found(steps_slow_down, made)
        assert (
            "took 10 % of the time in the first quarter of the run and 70 % in the last quarter"
            in (finding.sentence)
        )

    @pytest.mark.parametrize(
        "shares", [(0.0, 0.0, 0.0, 90.0), (0.0, 35.0, 39.0, 67.0), (29.0, 45.0, 42.0, 60.0)]
    )
    def test_a_later_phase_is_no_growth(self, shares):
        parts = self.quarters(*shares)
        stacks = [one for part in parts for one in part]
        made = watched(process(*stacks, wall_s=400.0, progress=(), parts=parts))
        assert judged(steps_slow_down, made) == []

    def test_steps_of_equal_length_are_no_growth(self):
        parts = self.quarters(10.0, 35.0, 55.0, 70.0)
        stacks = [one for part in parts for one in part]
        steps = [Progress(steps=50, first_s=101.0, last_s=105.0)]
        made = watched(process(*stacks, wall_s=400.0, progress=steps, parts=parts))
        assert judged(steps_slow_down, made) == []


class TestDebugMode:
    def test_anomaly(self):
        finding = found(debug_mode, watched(process(torch={"anomaly": True})))
        assert finding.sentence == "PyTorch's anomaly detection is on: all computing takes longer."

    def test_anomaly_by_the_trainer_of_lightning(self):
        fit = (
            of_library("lightning/pytorch/trainer/trainer.py", "Trainer.fit"),
            own("trainer.fit(model, data)", 60),
        )
        finding = found(debug_mode, watched(process(seen(fit, 50.0), torch={"anomaly": True})))
        assert "`detect_anomaly=True`" in finding.action

    @pytest.mark.parametrize(("value", "count"), [("1", 1), ("0", 0), ("", 0)])
    def test_variable(self, value, count):
        made = watched(process(variables={"CUDA_LAUNCH_BLOCKING": value}))
        assert len(judged(debug_mode, made)) == count

    @pytest.mark.parametrize("variables", [{}, {"PYTHONTRACEMALLOC": "5"}])
    def test_traced_memory_comes_with_the_time_of_python_code(self, variables):
        traced = msgspec.structs.replace(
            process(seen((own("heappush(queue, (when, n))", 8),), 60.0, State.PYTHON), progress=()),
            libraries={"python": {"tracemalloc": 5}}, variables=variables,
        )  # fmt: skip
        finding = found(debug_mode, watched(traced))
        assert finding.sentence.startswith("`tracemalloc` is on")
        assert figures(finding) == {"time in Python code": 60.0}
        assert finding.regain_percent == pytest.approx((36.0, 57.0))

    def test_none(self):
        assert judged(debug_mode, watched(process(torch={"anomaly": False}))) == []


TABLE = {
    "optimizer": "Adam",
    "parameter_bytes": 100 * 10**6,
    "table_gradient": {"rows": 10**6, "bytes": 96 * 10**6, "used_percent": 0.5},
}


class TestTableGradient:
    STEP = of_library("torch/optim/adam.py", "Adam.step")
    CLOSURE = of_library("lightning/pytorch/loops/optimization/automatic.py", "Closure.closure")
    FIT = own("trainer.fit(model, data)", 60)

    def test_a_backward_pass_that_the_optimizer_calls(self):
        backward = of_library("torch/_tensor.py", "Tensor.backward")
        frames = (backward, self.CLOSURE, self.STEP, self.FIT)
        made = watched(process(seen(frames, 50.0), torch=TABLE))
        assert len(judged(table_gradient_dense, made)) == 1

    def test_a_forward_pass_that_the_optimizer_calls(self):
        frames = (own("self.body(x)", 29, "Net.forward"), self.CLOSURE, self.STEP, self.FIT)
        made = watched(process(seen(frames, 50.0), torch=TABLE))
        assert judged(table_gradient_dense, made) == []


class TestBackwardLong:
    CALL = of_library("torch/nn/modules/module.py", "Module._call_impl")
    BACKWARD = (of_library("torch/_tensor.py", "Tensor.backward"), own("loss.backward()"), LOOP)

    STEP = (of_library("torch/optim/adam.py", "Adam.step"), own("optimizer.step()"), LOOP)

    def made(self, backward_s, forward_s, *others, **facts):
        forward = (of_library("torch/nn/functional.py", "embedding"), self.CALL, LOOP)
        rest_s = 100.0 - backward_s - forward_s - sum(one.wall_s for one in others)
        times = ((forward, forward_s), (self.BACKWARD, backward_s), (self.STEP, rest_s))
        stacks = (seen(frames, wall_s) for frames, wall_s in times if wall_s)
        torch = {"devices": ["cpu"], "parameter_bytes": 150_000_000}
        return watched(process(*stacks, *others, **{"torch": torch} | facts))

    @pytest.mark.parametrize(
        ("backward_s", "forward_s", "count"),
        [(60.0, 7.5, 1), (60.0, 8.0, 0), (29.0, 1.0, 0), (60.0, 0.0, 0)],
    )
    def test_thresholds(self, backward_s, forward_s, count):
        findings = judged(backward_long, self.made(backward_s, forward_s))
        assert [one.severity for one in findings] == [Severity.REMARK] * count

    def test_sentence(self):
        finding = found(backward_long, self.made(60.0, 2.0))
        assert finding.sentence == (
            "The backward pass took 60 % of the time, 30 times as long as the forward pass. "
            "Usually, the backward pass takes about twice as long."
        )
        assert "sparse=True" in finding.action
        assert finding.regain_percent == pytest.approx((15.0, 54.0))

    @pytest.mark.parametrize(
        ("size", "severity"),
        [(4 * MIB, Severity.REMARK), (4 * MIB - 1, Severity.HINT), (None, Severity.HINT)],
    )
    def test_a_small_model_has_no_large_table(self, size, severity):
        made = self.made(60.0, 2.0, torch={"devices": ["cpu"], "parameter_bytes": size})
        finding = found(backward_long, made)
        assert finding.severity is severity
        assert ("Embedding" in finding.action) is (severity is Severity.REMARK)
        assert (finding.regain_percent is None) is (severity is Severity.HINT)

    @pytest.mark.parametrize(("loss_s", "count"), [(5.0, 1), (5.6, 0)])
    def test_a_loss_that_a_loop_computes_is_a_part_of_the_forward_pass(self, loss_s, count):
        loss = seen((own("forward @ matrix", 41, "loss"), LOOP), loss_s, State.PYTHON)
        assert len(judged(backward_long, self.made(60.0, 2.0, loss))) == count

    def test_the_optimizer_of_lightning_calls_the_forward_pass(self):
        inner = (own("self(x)", 20, "training_step"), *self.STEP)
        assert judged(backward_long, self.made(60.0, 2.0, seen(inner, 20.0))) == []

    def test_the_set_up_is_no_part_of_it(self):
        made = seen((own("simulate(rng)", 8, "data"),), 30.0)
        assert judged(backward_long, self.made(60.0, 2.0, made)) == []
        assert len(judged(backward_long, self.made(60.0, 2.0, made, set_up=(made,)))) == 1

    @pytest.mark.parametrize(
        "frame",
        [
            of_library("torch/autograd/__init__.py", "grad"),
            of_library("torch/_dynamo/eval_frame.py", "_fn"),
        ],
    )
    def test_derivatives_in_the_loss_and_compiled_code_have_other_ratios(self, frame):
        other = seen((frame, own("energy(x)")), 1.0)
        assert judged(backward_long, self.made(60.0, 2.0, other)) == []

    def test_a_function_that_is_never_compiled_is_no_compiled_code(self):
        name = "DisableContext.__call__.<locals>._fn"
        other = seen((of_library("torch/_dynamo/eval_frame.py", name), own("opt.step()")), 1.0)
        assert len(judged(backward_long, self.made(60.0, 2.0, other))) == 1

    def test_with_a_gpu_functions_end_before_it_has_computed(self):
        made = self.made(60.0, 2.0, torch={"devices": ["cuda:0"], "parameter_bytes": 9 * MIB})
        assert judged(backward_long, made) == []

    def test_several_ranks_exchange_gradients(self):
        one = self.made(60.0, 1.0)[1].program.mains[0].process
        assert judged(backward_long, watched(one, msgspec.structs.replace(one, pid=11))) == []


class TestGeneratedWithoutCache:
    SAMPLE = of_library("transformers/generation/utils.py", "GenerationMixin._sample")

    def made(self, wall_s, *inner):
        attention = of_library("transformers/models/gpt2/modeling_gpt2.py", "GPT2Attention.forward")
        stacks = [(attention, self.SAMPLE, own("model.generate(ids)")), *inner]
        return watched(process(*(seen(one, wall_s / len(stacks)) for one in stacks)))

    @pytest.mark.parametrize(("wall_s", "count"), [(19.9, 0), (20.0, 1)])
    def test_threshold(self, wall_s, count):
        findings = judged(generated_without_cache, self.made(wall_s))
        assert [one.severity for one in findings] == [Severity.REMARK] * count

    def test_with_a_cache(self):
        update = of_library("transformers/cache_utils.py", "DynamicCache.update")
        inner = (update, self.SAMPLE, own("model.generate(ids)"))
        assert judged(generated_without_cache, self.made(60.0, inner)) == []

    @pytest.mark.parametrize(
        ("noted", "wall_s", "severity"),
        [
            ({"generated_without_cache": 2}, 10.0, Severity.WARNING),
            ({"generated_without_cache": 2}, 9.9, None),
            ({"generated_with_cache": 2}, 60.0, None),
            ({"generated_without_cache": 1, "generated_with_cache": 9}, 60.0, None),
        ],
    )
    def test_what_the_probe_noted_is_certain(self, noted, wall_s, severity):
        one = self.made(wall_s)[1].program.mains[0].process
        made = watched(msgspec.structs.replace(one, libraries={"transformers": noted}))
        findings = judged(generated_without_cache, made)
        assert [one.severity for one in findings] == ([severity] if severity else [])

    def test_sentence(self):
        assert found(generated_without_cache, self.made(36.0)).sentence == (
            "Generating text took 36 % of the time. As far as Teho could see, `generate` did not "
            "use its cache of keys and values."
        )


class TestBatchTiny:
    @staticmethod
    def made(batch, step_s):
        place = int(step_s * 1e6).bit_length()
        steps = Progress(
            steps=1000, first_s=105.0, last_s=195.0, between={place: Wait(999, 999 * step_s)}
        )
        return watched(process(progress=(steps,), loaders=[loader(batch_size=batch)]))

    @pytest.mark.parametrize(
        ("batch", "step_s", "count"),
        [(1, 0.005, 1), (2, 0.02, 1), (3, 0.005, 0), (1, 0.021, 0)],
    )
    def test_thresholds(self, batch, step_s, count):
        assert len(judged(batch_tiny, self.made(batch, step_s))) == count


class TestWaitsLong:
    @staticmethod
    def made(state, wall_s, parts=IDLE):
        return watched(process(seen((own("wait()"),), wall_s, state)), parts=parts)

    @pytest.mark.parametrize(("wall_s", "count"), [(29.0, 0), (30.0, 1)])
    def test_threshold(self, wall_s, count):
        assert len(judged(waits_long, self.made(State.NETWORK, wall_s))) == count

    def test_names_the_longest(self):
        finding = found(waits_long, self.made(State.SLEEPING, 62.0))
        assert finding.sentence == (
            "The program spent 62 % of the time waiting, mostly in sleep calls."
        )

    def test_a_program_without_steps_may_be_there_to_wait(self):
        one = process(seen((own("wait()"),), 90.0, State.SLEEPING), progress=())
        assert judged(waits_long, watched(one, parts=IDLE)) == []

    @pytest.mark.parametrize(
        ("state", "count"), [(State.SLEEPING, 0), (State.LOCK, 0), (State.NETWORK, 1)]
    )
    def test_a_thread_in_a_gpus_driver_waits_for_locks_and_times(self, state, count):
        parts = [NodePart(NODE, cores=8, cores_used=1.0, gpus=[gpu(90.0)])]
        waits = process(seen((own("kernels.launch()"),), 62.0, state), torch={"cuda": "12.6"})
        assert len(judged(waits_long, watched(waits, parts=parts))) == count

    @pytest.mark.parametrize(
        ("state", "share", "count"),
        [(State.NATIVE, 0.0, 1), (State.SLEEPING, 0.9, 0), (State.NETWORK, 0.9, 0)],
    )
    def test_child_processes_that_sleep_wait_for_something_outside(self, state, share, count):
        main = process(seen((own("wait()"),), 90.0, State.PROCESS))
        stacks = (
            seen((own("answer()"),), 40.0 * share, state),
            seen((own("f()"),), 40.0 * (1 - share)),
        )
        child = process(*stacks, wall_s=40.0, pid=12, parent_pid=10, progress=())
        assert len(judged(waits_long, watched(main, child, parts=IDLE))) == count

    def test_waiting_for_processes_that_use_the_cores_is_no_loss(self):
        assert judged(waits_long, self.made(State.PROCESS, 90.0, BUSY)) == []


class TestGoodUse:
    def test_busy_cores_are_no_evidence(self):
        assert not good_use(watched(process(), parts=BUSY)[1])

    @pytest.mark.parametrize(
        ("signals", "is_good"),
        [
            ({"sm": 85.0}, True),
            ({"sm": 40.0}, False),
            ({}, False),
            ({"power": 250.0}, True),
            ({"power": 90.0}, False),
        ],
    )
    def test_a_busy_gpu_needs_a_second_signal(self, signals, is_good):
        given = {
            "gpu_sm_active_percent": signals.get("sm", UNSUPPORTED),
            "gpu_power_w": signals.get("power", UNSUPPORTED),
        }
        one = gpu(95.0, **given)
        made = scenario(NodePart(NODE, cores=8, gpus=[one], power_limit_w=300.0))
        assert good_use(made[1]) is is_good

    def test_says_where_the_time_went(self):
        run, summary = watched(process(seen((own("wait()"),), 60.0, State.NETWORK)))
        summary = msgspec.structs.replace(summary, elapsed_s=190.0)
        assert main_loss(run, summary) == (
            "60 % of the time was spent on waiting for the network, "
            "most of it at train.py:12 (`wait()`)"
        )

    def test_a_short_python_process_does_not_represent_the_run(self):
        run, summary = watched(process(seen((own("wait()"),), 60.0, State.NETWORK)))
        summary = msgspec.structs.replace(summary, elapsed_s=210.0)
        assert main_loss(run, summary) == ""
        used = [("sort", 33), ("awk", 70), ("ls", 10)]
        programs = tuple(
            ProgramUse(name=name, samples=samples, processes=9, command=name,
                       command_samples=1, command_processes=1)
            for name, samples in used
        )  # fmt: skip
        node = msgspec.structs.replace(run.nodes[0], programs=programs, program_samples=100)
        run = msgspec.structs.replace(run, nodes=(node,))
        assert main_loss(run, summary) == "`sort` ran for 33 % and `awk` ran for 70 % of the time"


@pytest.mark.parametrize(
    ("without_core_s", "is_named"), [(None, True), (10.0, True), (10.1, False)]
)
def test_products_are_not_blamed_if_no_second_core_was_free(without_core_s, is_named):
    numpy = {"numpy": {"blas_threads": 2}}
    one = process(seen((own("a @ b", 30),), 73.0), wait_for_core_s=without_core_s)
    one = msgspec.structs.replace(one, libraries=numpy)
    made = watched(one, parts=[NodePart(NODE, cores=2, cores_used=1.02)])
    assert bool(judged(product_on_one_core, made)) is is_named
