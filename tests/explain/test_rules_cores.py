"""Rules about cores and threads, on both sides of their thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain import scenarios
from explain.program_parts import NODE, of_library, own, process, seen, watched
from explain.scenario_parts import (
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    repeated,
    scenario,
    step,
    untouched_gpu,
)
from teho.explain.program import program_of
from teho.explain.rules.cpu import cores_unused, serial_program, too_many_threads
from teho.model.allocation import Allocation
from teho.model.finding import Abstention, Severity
from teho.model.stack import State


class TestSerialProgram:
    def test_forty_cores(self):
        finding = found(serial_program, scenarios.serial_on_40_cores())
        assert finding.sentence == "The program used only one of 40 cores on r01c01."
        assert finding.severity is Severity.CRITICAL
        assert figures(finding) == {
            "cores used, mean (r01c01)": pytest.approx(0.97),
            "cores of the job (r01c01)": 40.0,
        }
        assert "`--cpus-per-task=1`" in finding.action
        assert "`multiprocessing.Pool(40)`" in finding.action

    @pytest.mark.parametrize(
        ("used", "count"),
        [(0.849, 0), (0.85, 1), (0.851, 1), (1.009, 1), (1.01, 1), (1.011, 0)],
    )
    def test_thresholds(self, used, count):
        assert len(judged(serial_program, scenario(NodePart(cores_used=used)))) == count

    @pytest.mark.parametrize(
        ("cores", "severity"),
        [(2, Severity.WARNING), (3, Severity.WARNING), (4, Severity.CRITICAL)],
    )
    def test_severity_grows_with_what_is_wasted(self, cores, severity):
        made = scenario(NodePart(cores=cores, cores_used=1.0))
        assert found(serial_program, made).severity is severity

    def test_one_core_of_one_is_all_there_is(self):
        assert judged(serial_program, scenario(NodePart(cores=1, cores_used=0.99))) == []

    def test_on_ones_own_machine_it_is_a_hint(self):
        finding = found(serial_program, scenario(NodePart(cores_used=1.0, scheduler=None)))
        assert finding.severity is Severity.HINT
        assert finding.action == (
            "If parts of the work do not depend on each other, compute them at the same time: "
            "`multiprocessing.Pool(40)`."
        )

    def test_threads_that_were_turned_off_are_named(self):
        made = scenario(NodePart(cores_used=1.0), environment={"OMP_NUM_THREADS": "1"})
        finding = found(serial_program, made)
        assert figures(finding)["OMP_NUM_THREADS"] == "1"
        assert "`export OMP_NUM_THREADS=40`" in finding.action

    @pytest.mark.parametrize("threads", ["4", "many"])
    def test_threads_that_were_not_turned_off_are_no_finding(self, threads):
        made = scenario(NodePart(cores_used=1.0), environment={"OMP_NUM_THREADS": threads})
        assert "OMP_NUM_THREADS" not in found(serial_program, made).action

    @pytest.mark.parametrize(("peak", "count"), [(0.99, 1), (1.0, 0), (1.01, 0)])
    def test_a_thread_that_drives_a_gpu_is_no_fault(self, peak, count):
        part = NodePart(cores_used=1.0, gpus=[{**untouched_gpu(), "gpu_busy_percent": peak}])
        assert len(judged(serial_program, scenario(part))) == count

    def test_abstains_if_the_gpu_was_not_seen(self):
        made = scenario(NodePart(cores_used=1.0, gpus=[gpu(UNSUPPORTED)]))
        assert isinstance(judged(serial_program, made), Abstention)

    def test_requested_cores_count_if_the_program_is_bound_to_fewer(self):
        given = Allocation(scheduler="slurm", cores_asked=20)
        made = scenario(NodePart(cores=1, cores_used=1.0, allocation=given))
        sentence = "The program used only one of 20 cores on r01g01."
        assert found(serial_program, made).sentence == sentence


class TestCoresUnused:
    @pytest.mark.parametrize(("tasks", "needed"), [(1, 1), (8, 8), (39, 39), (40, None)])
    def test_a_core_for_each_task_is_the_least(self, tasks, needed):
        made = scenario(
            NodePart("a", cores_used=0.3, ranks=range(tasks)), step=step(tasks, "a"), tasks=[]
        )
        verdict = judged(cores_unused, made)
        found_cores = [
            figures(finding)["cores used at the busiest time (a)"] for finding in verdict
        ]
        assert found_cores == ([needed] if needed else [])

    @pytest.mark.parametrize(
        ("used", "severity"),
        [
            (9.99, Severity.CRITICAL),
            (10.0, Severity.WARNING),
            (19.99, Severity.WARNING),
            (20.0, Severity.REMARK),
            (29.99, Severity.REMARK),
            (30.0, None),
            (30.01, None),
        ],
    )
    def test_thresholds(self, used, severity):
        verdict = judged(cores_unused, scenario(NodePart(cores_used=used)))
        assert [finding.severity for finding in verdict] == ([severity] if severity else [])

    def test_asks_for_the_busiest_time(self):
        used = repeated((4.0, 50), (12.02, 10))
        finding = found(cores_unused, scenario(NodePart("r01c01", cores_used=used)))
        assert finding.sentence == "The program kept 5.34 of 40 cores busy on r01c01."
        assert finding.action == (
            "Request only 12 cores, which are enough for the busiest time: `--cpus-per-task=12` "
            "(if each node has one task)."
        )

    def test_cores_that_are_used_at_times_are_kept(self):
        used = repeated((2.0, 55), (39.99, 5))
        finding = found(cores_unused, scenario(NodePart(cores_used=used)))
        assert finding.severity is Severity.REMARK
        assert (
            "Keep the 40 cores, because the program used all of them at its busiest time"
            in finding.action
        )

    @pytest.mark.parametrize(
        ("environment", "option"),
        [
            ({"SLURM_NTASKS": "4"}, "`--cpus-per-task=3`."),
            ({"SLURM_NTASKS": "8", "SLURM_JOB_NUM_NODES": "2"}, "`--cpus-per-task=3`."),
            ({"SLURM_CPUS_PER_TASK": "10"}, "`--cpus-per-task=3`."),
            ({"SLURM_NTASKS": "40"}, "`--ntasks-per-node=12`."),
            ({"SLURM_NTASKS": "12"}, "`--cpus-per-task=1`."),
            ({"SLURM_NTASKS": "1"}, "`--cpus-per-task=12`."),
            ({"SLURM_NTASKS": "many"}, "`--cpus-per-task=12` (if each node has one task)."),
            ({"SLURM_NTASKS": "0"}, "`--cpus-per-task=12` (if each node has one task)."),
        ],
    )
    def test_the_option_fits_the_number_of_tasks(self, environment, option):
        made = scenario(NodePart(cores_used=12.0), environment=environment)
        assert found(cores_unused, made).action.endswith(option)

    def test_grid_engine(self):
        made = scenario(NodePart(cores_used=0.5, scheduler="grid_engine"))
        assert (
            "only 1 core, which is enough for the busiest time: `-pe smp 1`"
            in found(cores_unused, made).action
        )

    def test_cores_that_came_with_the_gpus_are_not_judged(self):
        given = Allocation(scheduler="grid_engine", cores_asked=40, with_gpus=("cores",))
        made = scenario(NodePart(cores_used=1.0, allocation=given))
        assert judged(cores_unused, made) == []
        action = found(serial_program, made).action
        assert action.startswith("If parts of the work do not depend on each other")

    def test_outside_a_job_no_cores_were_requested(self):
        assert judged(cores_unused, scenario(NodePart(cores_used=1.0, scheduler=None))) == []

    def test_abstains_if_the_number_is_not_reported(self):
        made = scenario(NodePart(cores=0, cores_used=1.0))
        assert isinstance(judged(cores_unused, made), Abstention)

    @pytest.mark.parametrize(
        ("cores", "busy", "count"),
        [
            (24, 90.0, 0),
            (25, 90.0, 1),
            (25, 50.0, 1),
            (25, 49.99, 0),  # the cores may be needed to feed it
            (25, 0.5, 1),  # never used: judged as a CPU job
        ],
    )
    def test_unused_cores_of_a_gpu_job(self, cores, busy, count):
        part = NodePart(cores=cores, cores_used=2.0, gpus=[gpu(busy)] * 2)
        verdict = judged(cores_unused, scenario(part))
        assert len(verdict) == count
        if count and busy >= 50:
            assert verdict[0].severity is Severity.REMARK

    def test_abstains_if_the_gpu_was_not_seen(self):
        made = scenario(NodePart(cores_used=2.0, gpus=[gpu(UNSUPPORTED)]))
        assert isinstance(judged(cores_unused, made), Abstention)

    def test_without_a_series_the_mean_has_to_do(self):
        run, summary = scenario(NodePart(cores_used=7.5))
        summary.nodes[0].series.clear()
        assert "`--cpus-per-task=8`" in found(cores_unused, (run, summary)).action

    def test_gaps_in_the_series(self):
        made = scenario(NodePart(cores_used=repeated((3.0, 30), (None, 20), (6.0, 10))))
        assert "`--cpus-per-task=6`" in found(cores_unused, made).action

    def test_nodes_are_named_together(self):
        names = [f"r01c{number:02d}" for number in range(1, 7)]
        made = scenario(*(NodePart(name, cores_used=12.0) for name in names))
        assert found(cores_unused, made).sentence == (
            "The program kept 12 of 40 cores busy on each of r01c01, r01c02, r01c03, r01c04 "
            "and 2 more."
        )


class TestTooManyThreads:
    def test_says_how_many_each_process_may_have(self):
        finding = found(too_many_threads, scenarios.oversubscribed())
        assert finding.sentence == "On average, 64 threads competed for 8 cores on r01c01."
        assert figures(finding)["threads ready to run per core (r01c01)"] == 8.0
        assert finding.regain_percent == (0.0, 87.5)
        assert "slowest line" not in figures(finding)  # no program was looked into
        assert "`export OMP_NUM_THREADS=1`" in finding.action

    @pytest.mark.parametrize(("threads", "count"), [(10.0, 0), (10.01, 1)])
    def test_threshold(self, threads, count):
        assert len(judged(too_many_threads, self.waiting(50.0, 50.0, threads=threads))) == count

    @pytest.mark.parametrize(("threads", "count"), [(79.99, 0), (80.0, 1)])
    def test_threshold_if_no_process_is_known(self, threads, count):
        made = scenario(NodePart(signals={"job_runnable_threads": threads}))
        assert len(judged(too_many_threads, made)) == count

    @staticmethod
    def waiting(core_s, ran_s, threads=12.0, **part):
        """A process on 8 cores that waited for a core for some of its time."""
        loop = (own("decode(rows)"),)
        states = (State.CORE, core_s), (State.NATIVE, ran_s), (State.LOCK, 100 - core_s - ran_s)
        main = process(*(seen(loop, wall_s, state) for state, wall_s in states))
        signals = {"job_runnable_threads": threads, "cpu_busy_percent": 98.0}
        place = NodePart(NODE, cores=8, signals=signals, **({"cores_used": 7.8} | part))
        return watched(main, parts=[place])

    @pytest.mark.parametrize(
        ("core_s", "ran_s", "count"),
        [
            (33.0, 67.0, 1),
            (32.9, 67.1, 0),  # the threads take turns, which costs almost no time
            (5.1, 5.0, 1),  # a program that mostly waits for something else
            (4.9, 5.0, 0),
            (1.0, 90.0, 0),
            (0.0, 90.0, 0),
        ],
    )
    def test_only_threads_that_wait_for_a_core_count(self, core_s, ran_s, count):
        assert len(judged(too_many_threads, self.waiting(core_s, ran_s))) == count

    @pytest.mark.parametrize(("used", "count"), [(5.85, 1), (5.83, 0)])
    def test_threads_that_compete_with_other_programs_do_not_count(self, used, count):
        made = self.waiting(50.0, 50.0, threads=40.0, cores_used=used)
        assert len(judged(too_many_threads, made)) == count

    @pytest.mark.parametrize(
        ("processes", "each"), [(1.0, 40), (3.0, 13), (100.0, 1), (UNSUPPORTED, 40)]
    )
    def test_the_share_of_each_process(self, processes, each):
        signals = {"job_runnable_threads": 400.0, "job_processes": processes}
        finding = found(too_many_threads, scenario(NodePart(signals=signals)))
        assert f"`export OMP_NUM_THREADS={each}`" in finding.action

    @pytest.mark.parametrize(
        ("given", "count"),
        [("40", 0), ("41", 1), ("", 1), ("2,2", 1)],
    )
    def test_processes_that_are_limited_already_get_no_advice(self, given, count):
        part = NodePart(signals={"job_runnable_threads": 80.0})
        run, summary = scenario(part)
        main = process(node=summary.nodes[0].name, variables={"OMP_NUM_THREADS": given})
        made = run, msgspec.structs.replace(summary, program=program_of([main]))
        assert len(judged(too_many_threads, made)) == count

    @pytest.mark.parametrize(("threads", "count"), [(79.99, 0), (80.0, 1)])
    def test_threads_that_fit_the_job_s_cores_are_not_too_many(self, threads, count):
        given = Allocation(scheduler="slurm", cores_asked=40)
        part = NodePart(cores=1, signals={"job_runnable_threads": threads}, allocation=given)
        assert len(judged(too_many_threads, scenario(part))) == count

    @pytest.mark.parametrize(
        ("scheduler", "environment"),
        [("local", {}), (None, {}), ("slurm", {"SLURM_NTASKS": "4"})],
    )
    def test_other_cores_may_be_those_of_other_tasks(self, scheduler, environment):
        given = Allocation(scheduler=scheduler, cores_asked=40)
        part = NodePart(cores=1, signals={"job_runnable_threads": 3.0}, allocation=given)
        finding = found(too_many_threads, scenario(part, environment=environment))
        assert finding.sentence == "On average, 3 threads competed for 1 core on r01g01."

    def test_a_node_without_known_cores_is_left_out(self):
        assert judged(too_many_threads, scenario(NodePart(cores=0))) == []

    def test_a_number_in_the_program_takes_precedence(self):
        action = found(too_many_threads, scenarios.oversubscribed()).action
        assert "A program that sets a number of threads itself" in action
        assert "ignores `OMP_NUM_THREADS`: set the number in the program to 1." in action

    @pytest.mark.parametrize(
        ("library", "wall_s", "start"),
        [
            ("lightgbm", 60.0, "Limit the threads of LightGBM: `num_threads=8` (or `n_jobs=8`)."),
            ("xgboost", 60.0, "Limit the threads of XGBoost: `nthread=8` (or `n_jobs=8`)."),
            ("lightgbm", 40.0, "Limit the threads of each process"),
            ("lightgbm_tools", 60.0, "Limit the threads of each process"),
        ],
    )
    def test_the_parameter_of_a_library_comes_first(self, library, wall_s, start):
        frames = (of_library(f"{library}/basic.py", "Booster.update"), own("train(rows)"))
        main = process(seen(frames, wall_s, State.THREADS))
        part = NodePart(NODE, cores=8, signals={"job_runnable_threads": 32.0})
        finding = found(too_many_threads, watched(main, parts=[part]))
        assert finding.action.startswith(start)
        assert "`export OMP_NUM_THREADS=8`" in finding.action
