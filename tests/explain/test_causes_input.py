"""Causes of waiting for data, on both sides of their thresholds."""

from __future__ import annotations

import pytest

from explain.program_parts import (
    TENSORS,
    alone,
    awaiting,
    collating,
    fetching,
    idle,
    in_worker,
    loader,
    process,
    starting,
    stopping,
    watched,
    with_workers,
    worker,
)
from explain.scenario_parts import FORBIDDEN, NodePart, figures, found, judged
from teho.explain.rules.input import (
    input_collated_one_by_one,
    input_in_main_process,
    input_slow,
    input_too_few_workers,
    input_too_many_workers,
    input_workers_needless,
    input_workers_restarted,
)
from teho.model.finding import Severity
from teho.units import GIB

MIB = 1024**2

WORKERS = {"num_workers": 2, "prefetch_factor": 2}


class TestAnyWaiting:
    """What all rules on waiting for data have in common, by the simplest of them."""

    @pytest.mark.parametrize(
        ("waits_s", "wall_s", "count"),
        [(9.99, 100.0, 0), (10.0, 100.0, 1), (1.99, 10.0, 0), (2.0, 10.0, 1)],
    )
    def test_thresholds_of_the_loss(self, waits_s, wall_s, count):
        assert len(judged(input_slow, alone(fetching(waits_s), wall_s=wall_s))) == count

    @pytest.mark.parametrize(("batches", "count"), [(9, 0), (10, 1)])
    def test_threshold_of_the_batches(self, batches, count):
        assert len(judged(input_slow, alone(fetching(40.0), batches=batches))) == count

    @pytest.mark.parametrize(("workers", "count"), [(0, 1), (2, 0)])
    def test_the_first_start_of_the_workers_is_no_loss(self, workers, count):
        settings = {"num_workers": workers, "epochs": 1, "first_s": 5.0}
        made = alone(awaiting(12.0), wall_s=100.0, **settings)
        assert len(judged(input_slow, made)) == count

    @pytest.mark.parametrize(
        ("waits_s", "scheduler", "severity"),
        [
            (49.9, "slurm", Severity.WARNING),
            (50.0, "slurm", Severity.CRITICAL),
            (50.0, None, Severity.WARNING),
        ],
    )
    def test_severity(self, waits_s, scheduler, severity):
        made = alone(fetching(waits_s), parts=[NodePart(cores=8, scheduler=scheduler)])
        assert found(input_slow, made).severity is severity

    def test_without_a_loader(self):
        assert judged(input_slow, watched(process(fetching(40.0)))) == []

    def test_of_several_ranks_the_one_that_waits_the_longest(self):
        ranks = [
            process(
                fetching(waits_s),
                pid=10 + n,
                loaders=[loader()],
                torch={"rank": n, "world_size": 2},
            )
            for n, waits_s in enumerate((20.0, 30.0))
        ]
        finding = found(input_slow, watched(*ranks))
        assert finding.sentence == "Rank 1 waited for data 30 % of the time."
        assert figures(finding)["cores"] == 4.0

    @pytest.mark.parametrize(("began_s", "cores"), [(100.0, 4), (149.0, 4), (150.0, 8), (200.0, 8)])
    def test_ranks_share_cores_while_they_run_at_the_same_time(self, began_s, cores):
        other = process(pid=11, began_s=began_s)
        made = watched(process(fetching(40.0), loaders=[loader()]), other)
        assert figures(found(input_slow, made))["cores"] == cores

    def test_if_nothing_was_recorded_its_own_cores_count(self):
        elsewhere = process(fetching(40.0), loaders=[loader()], node="r09", cores=(1, 5, 6))
        assert figures(found(input_slow, watched(elsewhere)))["cores"] == 3.0
        nowhere = process(fetching(40.0), loaders=[loader()], node="r09")
        assert figures(found(input_slow, watched(nowhere)))["cores"] == 1.0


class TestInMainProcess:
    def test_says_where_and_how_many(self):
        finding = found(input_in_main_process, alone(fetching(60.0)))
        assert finding.sentence == (
            "The program waited for data 60 % of the time: the data loader has no workers."
        )
        assert finding.action == (
            "Add workers: `DataLoader(…, num_workers=2, persistent_workers=True)` in train.py:8."
        )
        # Two workers load in 30 s what takes 60; the program itself needs 40.
        assert finding.regain_percent == (30.0, 60.0)
        assert figures(finding)["slowest line"] == "train.py:20  decode(self.raw[i])"

    def test_as_many_workers_as_loading_takes(self):
        action = found(input_in_main_process, alone(fetching(90.0))).action
        assert "num_workers=6," in action  # 15 s each; all eight would save 3.75 s more
        action = found(input_in_main_process, alone(fetching(15.0))).action
        assert "num_workers=1," in action

    def test_at_the_least_what_busy_cores_leave(self):
        part = NodePart(cores=8, cores_used=7.2)
        finding = found(input_in_main_process, alone(fetching(60.0), parts=[part]))
        assert finding.regain_percent == pytest.approx((10.0, 60.0))
        unknown = NodePart(cores=8, cores_used=FORBIDDEN)
        finding = found(input_in_main_process, alone(fetching(60.0), parts=[unknown]))
        assert finding.regain_percent == (0.0, 60.0)

    def test_on_one_core(self):
        part = NodePart(cores=1, cores_used=1.0)
        finding = found(input_in_main_process, alone(fetching(60.0), parts=[part]))
        assert finding.regain_percent == (0.0, 40.0)

    @pytest.mark.parametrize("rule", [input_in_main_process, input_slow])
    @pytest.mark.parametrize(
        ("peak_gib", "ranks", "keeping"),
        [
            (
                296.875,
                1,
                ". Or keep the data in memory: the data need 3.12 GiB, and 3.12 GiB stayed free",
            ),
            (296.876, 1, ""),
            (
                290.0,
                2,
                ". Or keep the data in memory: the data need 3.12 GiB, and 5.00 GiB stayed free",
            ),
            (294.0, 2, ""),  # each rank has its own
            (FORBIDDEN, 1, ". Or keep the data in memory, if there is room for 3.12 GiB"),
        ],
    )
    def test_data_may_stay_in_memory_that_was_free(self, rule, peak_gib, ranks, keeping):
        peak = peak_gib if peak_gib is FORBIDDEN else peak_gib * GIB
        part = NodePart(cores=8, cores_used=4.0, memory_peak=peak, memory_limit=300.0 * GIB)
        given = loader(samples=3200, batch_bytes=32 * MIB)
        crew = [process(fetching(60.0), pid=10 + n, loaders=[given]) for n in range(ranks)]
        action = found(rule, watched(*crew, parts=[part])).action
        assert f"{keeping}." in action
        assert ("keep the data" in action) is bool(keeping)

    def test_without_a_known_limit_the_size_is_shown(self):
        part = NodePart(cores=8, cores_used=4.0, memory_limit=FORBIDDEN)
        made = alone(fetching(60.0), samples=3200, batch_bytes=32 * MIB, parts=[part])
        action = found(input_in_main_process, made).action
        assert action.endswith(". Or keep the data in memory, if there is room for 3.12 GiB.")

    @pytest.mark.parametrize("batch_size", [None, 0])
    def test_unless_it_is_not_known(self, batch_size):
        made = alone(fetching(60.0), samples=9, batch_bytes=9, batch_size=batch_size)
        assert "memory" not in found(input_in_main_process, made).action

    def test_workers_of_an_iterable_set_must_divide_it(self):
        made = alone(fetching(60.0), is_iterable=True)
        assert "`torch.utils.data.get_worker_info()`" in found(input_in_main_process, made).action
        one = alone(fetching(15.0), is_iterable=True)
        assert "get_worker_info" not in found(input_in_main_process, one).action

    @pytest.mark.parametrize("settings", [{"num_workers": 1}, {"num_workers": None}])
    def test_is_silent_about_workers_and_other_libraries(self, settings):
        assert judged(input_in_main_process, alone(fetching(60.0), **settings)) == []


class TestTooFewWorkers:
    def test_says_how_many_would_do(self):
        made = with_workers(fetching(90.0, in_worker()), waits_s=60.0)
        finding = found(input_too_few_workers, made)
        assert finding.sentence.endswith(": 2 workers cannot load the data fast enough.")
        # Five workers load in 36 s, within a twentieth of the 40 s that the program needs itself.
        assert finding.action.startswith("Start more workers: `DataLoader(…, num_workers=")
        assert 4 <= int(finding.action.split("num_workers=")[1].split(")")[0]) <= 5
        assert finding.regain_percent[1] == pytest.approx(60.0, abs=5.0)
        assert figures(finding)["share of the time in which the workers were busy"] == 100.0

    @pytest.mark.parametrize(("busy_s", "count"), [(69.9, 0), (70.0, 1)])
    def test_threshold_of_their_work(self, busy_s, count):
        stacks = fetching(busy_s, in_worker()), idle(100.0 - busy_s)
        assert len(judged(input_too_few_workers, with_workers(*stacks, waits_s=60.0))) == count

    @pytest.mark.parametrize(("workers", "count"), [(1, 1), (3, 1), (4, 0), (5, 0)])
    def test_there_must_be_a_core_for_another(self, workers, count):
        part = NodePart(cores=4, cores_used=2.0)
        made = with_workers(
            fetching(100.0, in_worker()), waits_s=80.0, num_workers=workers, parts=[part]
        )
        assert len(judged(input_too_few_workers, made)) == count

    def test_if_no_worker_was_seen(self):
        made = watched(process(awaiting(60.0), loaders=[loader(**WORKERS)]))
        assert judged(input_too_few_workers, made) == []
        assert len(judged(input_slow, made)) == 1


class TestTooManyWorkers:
    @pytest.mark.parametrize(
        ("workers", "without_core_s", "count"),
        [(8, 9.0, 0), (9, 2.0, 1), (9, 1.9, 0), (9, None, 0)],
    )
    def test_threshold_is_the_cores_if_workers_wait_for_them(self, workers, without_core_s, count):
        given = loader(num_workers=workers)
        crew = [
            worker(fetching(20.0, in_worker()), pid=11 + n, wait_for_core_s=without_core_s)
            for n in range(workers)
        ]
        made = watched(process(awaiting(40.0), loaders=[given]), *crew)
        assert len(judged(input_too_many_workers, made)) == count

    @pytest.mark.parametrize(("without_core_s", "count"), [(9.9, 0), (10.0, 1), (None, 0)])
    def test_waiting_for_a_core_counts_as_well(self, without_core_s, count):
        given = loader(num_workers=32)
        one = process(loaders=[given], wait_for_core_s=without_core_s)
        verdict = judged(input_too_many_workers, watched(one))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == (0.0, 10.0)

    @pytest.mark.parametrize(
        ("waits_s", "advice", "workers"),
        [(49.9, "Leave one core for the program", 1), (50.0, "Use at most one worker per core", 2)],
    )
    def test_leaves_a_core_to_a_program_that_needs_it(self, waits_s, advice, workers):
        one = process(awaiting(waits_s), loaders=[loader(num_workers=8)], wait_for_core_s=20.0)
        made = watched(one, parts=[NodePart(cores=2, cores_used=2.0)])
        finding = found(input_too_many_workers, made)
        assert finding.sentence.startswith("The data loader has 8 workers on 2 cores:")
        assert finding.action.startswith(f"{advice}:")
        assert f"num_workers={workers})" in finding.action


class TestCollated:
    @pytest.mark.parametrize(("collates_s", "count"), [(19.9, 0), (20.0, 1)])
    def test_threshold(self, collates_s, count):
        made = alone(collating(collates_s), fetching(40.0 - collates_s))
        assert len(judged(input_collated_one_by_one, made)) == count

    def test_tensors_need_no_putting_together(self):
        made = alone(collating(10.0), fetching(30.0), dataset=TENSORS, dataset_bytes=1 * GIB)
        finding = found(input_collated_one_by_one, made)
        assert "`for rows in torch.randperm(n).split(batch_size): yield x[rows], y[rows]`" in (
            finding.action
        )
        assert finding.regain_percent == (20.0, 40.0)
        label = "share of the waiting time spent on putting batches together"
        assert label not in figures(finding)

    def test_a_set_of_only_tensors_may_do_more_with_them(self):
        made = alone(collating(10.0), fetching(30.0), dataset_bytes=1 * GIB)
        assert judged(input_collated_one_by_one, made) == []

    def test_other_sets_may_give_whole_batches(self):
        finding = found(input_collated_one_by_one, alone(collating(40.0)))
        assert "`DataLoader(…, batch_size=None)`" in finding.action

    def test_a_program_that_does_so_already_gets_no_advice(self):
        made = alone(collating(40.0), batch_size=None, dataset=TENSORS)
        assert judged(input_collated_one_by_one, made) == []

    def test_not_with_workers(self):
        assert judged(input_collated_one_by_one, alone(collating(40.0), num_workers=2)) == []


class TestNeedlessWorkers:
    @pytest.mark.parametrize(("collates_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_threshold(self, collates_s, count):
        below = in_worker()
        stacks = collating(collates_s, below), fetching(20.0 - collates_s, below), idle(50.0)
        verdict = judged(input_workers_needless, with_workers(*stacks))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == (0.0, 40.0)
            assert "putting samples together into batches." in verdict[0].sentence

    def test_tensors(self):
        made = with_workers(fetching(20.0, in_worker()), dataset=TENSORS)
        finding = found(input_workers_needless, made)
        assert finding.sentence.endswith("workers only send samples that are already in memory.")
        assert "`DataLoader(…, num_workers=0)` in train.py:8" in finding.action
        assert finding.regain_percent == (20.0, 40.0)

    def test_tensors_that_the_program_works_on(self):
        made = with_workers(fetching(20.0, in_worker()), dataset_bytes=1 * GIB)
        assert judged(input_workers_needless, made) == []

    @pytest.mark.parametrize("settings", [{"num_workers": 0}, {"batch_size": None}])
    def test_not_without_workers_or_of_whole_batches(self, settings):
        made = with_workers(collating(20.0, in_worker()), dataset=TENSORS, **settings)
        assert judged(input_workers_needless, made) == []


class TestRestartedWorkers:
    @pytest.mark.parametrize(("epochs", "count"), [(2, 0), (3, 1)])
    def test_threshold_of_the_epochs(self, epochs, count):
        made = with_workers(idle(1.0), epochs=epochs, first_s=30.0)
        assert len(judged(input_workers_restarted, made)) == count

    @pytest.mark.parametrize(
        ("first_s", "part"),
        [(9.9, ""), (10.0, "partly"), (19.9, "partly"), (20.0, "mostly"), (90.0, "mostly")],
    )
    def test_threshold_of_the_first_batches(self, first_s, part):
        verdict = judged(
            input_workers_restarted, with_workers(idle(1.0), epochs=10, first_s=first_s)
        )
        assert len(verdict) == bool(part)
        if verdict:
            lost = min(40.0, first_s)
            assert verdict[0].regain_percent == (lost / 2, lost)
            assert verdict[0].sentence.endswith(f"{part} because workers were started 10 times.")
            assert verdict[0].mutes is (part == "mostly")
            assert figures(verdict[0])["slowest line"] == "train.py:30  for x, y in loader:"

    @pytest.mark.parametrize(("work_s", "part"), [(50.0, "mostly"), (51.0, "partly")])
    def test_the_first_batch_has_to_be_loaded_in_any_case(self, work_s, part):
        # Ten of a hundred batches are first ones; two workers do this much work each.
        made = with_workers(fetching(work_s, in_worker()), epochs=10, first_s=30.0)
        assert part in found(input_workers_restarted, made).sentence

    @pytest.mark.parametrize(("made_times", "count"), [(1, 0), (2, 0), (3, 1), (10, 1)])
    def test_kept_by_a_loader_that_is_itself_made_again(self, made_times, count):
        made = with_workers(
            idle(1.0), epochs=10, made=made_times, first_s=30.0, persistent_workers=True
        )
        assert len(judged(input_workers_restarted, made)) == count

    def test_not_without_workers(self):
        made = alone(starting(40.0), epochs=10, first_s=40.0)
        assert judged(input_workers_restarted, made) == []

    @pytest.mark.parametrize(
        ("stopped_s", "first_s", "count"),
        [(0.6, 0.9, 1), (1.6, 0.0, 1), (0.3, 0.5, 0), (0.1, 1.5, 1)],
    )
    def test_the_end_of_workers_counts_and_a_short_run_may_be_judged(
        self, stopped_s, first_s, count
    ):
        given = loader(num_workers=2, epochs=40, first_s=first_s)
        stacks = awaiting(2.4 - stopped_s), stopping(stopped_s)
        made = watched(process(*stacks, loaders=[given], wall_s=6.0), worker(idle(1.0)))
        assert len(judged(input_workers_restarted, made)) == count


class TestSlow:
    def test_all_of_the_waiting_may_be_given_back(self):
        assert found(input_slow, alone(fetching(40.0))).regain_percent == (0.0, 40.0)
