"""What a GPU has room for: all the data, and larger batches; on both sides of their thresholds."""

from __future__ import annotations

import pytest

from explain.program_parts import NODE, fetching, loader, own, process, seen, watched
from explain.scenario_parts import (
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    kinds_of,
    repeated,
    untouched_gpu,
)
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.gpu import batch_small, data_fits_gpu
from teho.model.finding import Abstention, Severity
from teho.model.stack import Frame
from teho.model.watched import Progress
from teho.units import GIB

ON_GPU = {"cuda": "12.8", "devices": ["cuda:0"]}
SAMPLE_BYTES = 3 * 32 * 32 * 4


def copying(wall_s):
    return seen((own("x.to(device)", 31),), wall_s)


def importing(wall_s):
    return seen((Frame("<frozen importlib._bootstrap>", "_find_and_load", 1, ""),), wall_s)


def small(busy=100.0, **signals):
    """Return a GPU that is busy with little."""
    return gpu(
        busy, **{"gpu_sm_active_percent": 60.0, "gpu_memory_used_bytes": 6.0 * GIB} | signals
    )


class TestDataFits:
    @staticmethod
    def made(*stacks, gpus=None, torch=None, gpu_memory_bytes=32 * GIB, **settings):
        """Make a run that goes through 50,000 small images; its GPU uses 17 of 32 GiB."""
        facts = {"samples": 50_000, "batch_bytes": 32 * SAMPLE_BYTES, "pin_memory": True}
        one = process(
            *(stacks or [fetching(20.0)]),
            loaders=[loader(**facts | settings)],
            torch=ON_GPU if torch is None else torch,
        )
        part = NodePart(NODE, gpus=gpus or [gpu(50.0)], gpu_memory_bytes=gpu_memory_bytes)
        return watched(one, parts=[part])

    @pytest.mark.parametrize(
        ("stacks", "count"),
        [
            ([fetching(9.9)], 0),
            ([fetching(10.0)], 1),
            ([copying(9.9)], 0),
            ([copying(10.0)], 1),
            ([fetching(5.0), copying(4.9)], 0),
            ([fetching(5.0), copying(5.0)], 1),
        ],
    )
    def test_threshold_of_the_time(self, stacks, count):
        assert len(judged(data_fits_gpu, self.made(*stacks))) == count

    @pytest.mark.parametrize(("busy", "count"), [(90.0, 1), (90.1, 0), (100.0, 0)])
    def test_time_while_the_gpu_works_is_not_lost(self, busy, count):
        verdict = judged(data_fits_gpu, self.made(copying(60.0), gpus=[gpu(busy)]))
        assert len(verdict) == count
        if verdict:
            assert verdict[0].regain_percent == (0.0, 10.0)

    @pytest.mark.parametrize(("samples", "count"), [(7680, 1), (7681, 0)])
    def test_threshold_of_the_size(self, samples, count):
        # Of 32 GiB 17 are used: samples of 1 MiB may take half of what is left.
        made = self.made(samples=samples, batch_bytes=32 * 1024**2)
        assert len(judged(data_fits_gpu, made)) == count

    def test_the_peak_of_the_fullest_gpu_counts(self):
        later = gpu(50.0, gpu_memory_used_bytes=repeated((17.0 * GIB, 59), (31.9 * GIB, 1)))
        assert judged(data_fits_gpu, self.made(gpus=[gpu(50.0), later])) == []

    def test_says_how_much_and_how(self):
        finding = found(data_fits_gpu, self.made(fetching(20.0), copying(10.0), batch_size=64))
        assert finding.severity is Severity.REMARK
        assert finding.sentence == (
            "The whole data set (293 MiB) would fit into the 15.0 GiB of GPU memory that stayed "
            "free."
        )
        assert figures(finding) == {
            "waiting for data": 20.0,
            "time spent on copies to the GPU": 10.0,
            "GPU busy after the start": 50.0,
            "size of all samples": 25_000 * SAMPLE_BYTES,
            "GPU memory that stayed free": 15 * GIB,
        }
        assert '`for rows in torch.randperm(n, device="cuda").split(64): ' in finding.action
        assert finding.regain_percent == (0.0, 30.0)

    @pytest.mark.parametrize(("epochs", "count"), [(1, 0), (2, 1)])
    def test_once_is_not_again(self, epochs, count):
        assert len(judged(data_fits_gpu, self.made(epochs=epochs))) == count

    @pytest.mark.parametrize(("batches", "count"), [(9, 0), (10, 1)])
    def test_not_of_a_few_batches(self, batches, count):
        assert len(judged(data_fits_gpu, self.made(batches=batches))) == count

    @pytest.mark.parametrize(
        ("torch", "count"),
        [
            ({}, 0),
            ({"devices": None}, 0),
            ({"devices": ["cpu"]}, 0),
            ({"devices": ["cpu", "cuda:1"]}, 1),
        ],
    )
    def test_only_of_a_program_that_uses_the_gpu(self, torch, count):
        assert len(judged(data_fits_gpu, self.made(torch=torch))) == count

    def test_not_without_a_gpu_or_if_it_is_unused(self):
        one = process(fetching(20.0), loaders=[loader()], torch=ON_GPU)
        assert judged(data_fits_gpu, watched(one)) == []
        made = self.made(gpus=[untouched_gpu()])
        assert "data_fits_gpu" not in kinds_of(made)
        assert len(judged(data_fits_gpu, made)) == 1

    def test_not_of_a_stream(self):
        for size in (None, 32 * SAMPLE_BYTES):
            made = self.made(is_iterable=True, samples=None, batch_bytes=size)
            assert judged(data_fits_gpu, made) == []

    @pytest.mark.parametrize(
        ("facts", "lacked"),
        [
            (
                {"samples": None},
                (
                    f"size of all samples of {NODE}: "
                    "the data loader does not report the size of its data"
                ),
            ),
            ({"batch_bytes": None}, f"size of all samples of {NODE}"),
            ({"gpus": [gpu(UNSUPPORTED)]}, f"GPU busy of GPU 0 on {NODE}"),
            (
                {"gpus": [gpu(50.0), gpu(50.0, gpu_memory_used_bytes=UNSUPPORTED)]},
                f"GPU memory used of GPU 1 on {NODE}",
            ),
            ({"gpu_memory_bytes": None}, f"GPU memory, total of GPU 0 on {NODE}"),
        ],
    )
    def test_abstains_if_all_other_conditions_are_met(self, facts, lacked):
        verdict = judged(data_fits_gpu, self.made(**facts))
        assert isinstance(verdict, Abstention)
        assert lacked in verdict.lacked
        for other in ({"epochs": 1}, {"torch": {}}, {"is_iterable": True}):
            assert judged(data_fits_gpu, self.made(**facts | other)) == []
        assert judged(data_fits_gpu, self.made(fetching(5.0), **facts)) == []

    def test_is_reported_with_the_cause(self):
        well = gpu(60.0, gpu_sm_active_percent=57.0, gpu_dram_percent=20.0)
        made = self.made(copying(40.0), gpus=[well], pin_memory=False)
        findings, _ = judge_all(*made, load_policy())
        assert [(one.kind, one.regain_percent) for one in findings] == [
            ("copies_from_pageable_memory", (20.0, 40.0)),
            ("data_fits_gpu", None),  # another way to the same 40 %
        ]

    def test_without_a_cause_it_may_save_the_time_itself(self):
        well = gpu(60.0, gpu_sm_active_percent=57.0, gpu_dram_percent=20.0)
        findings, _ = judge_all(*self.made(copying(40.0), gpus=[well]), load_policy())
        assert [(one.kind, one.regain_percent) for one in findings] == [
            ("data_fits_gpu", (0.0, 40.0))
        ]


class TestSmallBatches:
    @staticmethod
    def made(*stacks, gpus=None, torch=None, gpu_memory_bytes=32 * GIB, **settings):
        """Make a run on a GPU of 32 GiB, 6 of which are used, with 60 % of its multiprocessors."""
        one = process(
            *stacks, loaders=[loader(**settings)], torch=ON_GPU if torch is None else torch
        )
        part = NodePart(NODE, gpus=gpus or [small()], gpu_memory_bytes=gpu_memory_bytes)
        return watched(one, parts=[part])

    @pytest.mark.parametrize(("used_gib", "count"), [(15.99, 1), (16.0, 0)])
    def test_threshold_of_the_memory(self, used_gib, count):
        rises = repeated((6.0 * GIB, 59), (used_gib * GIB, 1))
        made = self.made(gpus=[small(gpu_memory_used_bytes=rises)])
        assert len(judged(batch_small, made)) == count

    @pytest.mark.parametrize(("active", "count"), [(79.9, 1), (80.0, 0)])
    def test_threshold_of_the_multiprocessors(self, active, count):
        made = self.made(gpus=[small(gpu_sm_active_percent=active)])
        assert len(judged(batch_small, made)) == count

    @pytest.mark.parametrize(("busy", "count"), [(99.8, 1), (100.0, 0)])
    @pytest.mark.parametrize("active", [UNSUPPORTED, 40.0])
    def test_threshold_of_the_time_without_sm_activity(self, busy, active, count):
        # They are not asked where the GPU was at work for half of the time or less.
        half = repeated((busy, 15), (0.0, 30), (busy, 15))
        made = self.made(gpus=[small(half, gpu_sm_active_percent=active)])
        assert len(judged(batch_small, made)) == count

    def test_a_slow_start_does_not_count(self):
        busy, active = repeated((0.0, 20), (95.0, 40)), repeated((0.0, 20), (90.0, 40))
        assert (
            judged(batch_small, self.made(gpus=[small(busy, gpu_sm_active_percent=active)])) == []
        )

    @pytest.mark.parametrize(("waits_s", "count"), [(9.9, 1), (10.0, 0)])
    def test_waiting_for_data_is_another_cause(self, waits_s, count):
        assert len(judged(batch_small, self.made(fetching(waits_s)))) == count

    def test_of_any_rank(self):
        ranks = [
            process(fetching(waits_s), pid=pid, loaders=[loader()], torch=ON_GPU)
            for pid, waits_s in ((10, 1.0), (11, 40.0))
        ]
        parts = [NodePart(NODE, gpus=[small(), small()])]
        assert judged(batch_small, watched(*ranks, parts=parts)) == []
        assert len(judged(batch_small, watched(ranks[0], parts=parts))) == 1

    def test_says_how_much_and_how(self):
        finding = found(batch_small, self.made(samples=50_000))
        assert finding.severity is Severity.REMARK
        assert finding.sentence == (
            "Batches of 32 samples leave 26.0 GiB of the GPU's 32.0 GiB of memory free, and the "
            "GPU has too little work."
        )
        assert figures(finding) == {
            "batch size": 32.0,
            "GPU memory used, highest": 6 * GIB,
            "used share of the GPU memory, highest": 18.75,
            "SM activity while the GPU was busy": pytest.approx(60.0),
        }
        assert finding.action.startswith(
            "Try batches that are two, four and eight times as large: "
        )
        assert "`teho tune --allow batch-size -- …`" in finding.action
        assert "the learning rate may have to change" in finding.action
        assert finding.regain_percent is None

    @pytest.mark.parametrize(
        ("settings", "count"),
        [
            ({"batch_size": None}, 0),
            ({"samples": 32}, 0),
            ({"samples": 33}, 1),
            ({"batches": 9}, 0),
            ({"batches": 10}, 1),
        ],
    )
    def test_batches_that_can_be_larger(self, settings, count):
        assert len(judged(batch_small, self.made(**settings))) == count

    @pytest.mark.parametrize(
        ("torch", "count"),
        [({}, 0), ({"devices": ["cpu"]}, 0), ({"devices": ["cpu", "cuda:1"]}, 1)],
    )
    def test_only_of_parameters_on_a_gpu(self, torch, count):
        assert len(judged(batch_small, self.made(torch=torch))) == count

    @pytest.mark.parametrize("other", [gpu(10.0), small(gpu_sm_active_percent=90.0)])
    def test_the_fullest_and_busiest_gpu_counts(self, other):
        assert judged(batch_small, self.made(gpus=[small(), other])) == []

    @pytest.mark.parametrize(
        ("gpus", "lacked"),
        [
            (
                [small(UNSUPPORTED, gpu_sm_active_percent=UNSUPPORTED)],
                f"GPU busy of GPU 0 on {NODE}",
            ),
            ([small(gpu_memory_used_bytes=UNSUPPORTED)], f"GPU memory used of GPU 0 on {NODE}"),
        ],
    )
    def test_abstains_if_the_question_arises(self, gpus, lacked):
        verdict = judged(batch_small, self.made(gpus=gpus))
        assert isinstance(verdict, Abstention)
        assert verdict.lacked.startswith(lacked)
        assert judged(batch_small, self.made(gpus=gpus, batch_size=None)) == []
        assert judged(batch_small, self.made(gpus=gpus, torch={})) == []
        assert judged(batch_small, self.made(fetching(40.0), gpus=gpus)) == []

    def test_abstains_if_the_size_of_the_memory_is_not_known(self):
        assert isinstance(judged(batch_small, self.made(gpu_memory_bytes=None)), Abstention)

    def test_of_a_slice(self):
        """A MIG instance tells no busy share: its multiprocessors count for the whole run."""
        assert len(judged(batch_small, self.made(gpus=[small(UNSUPPORTED)]))) == 1

    @pytest.mark.parametrize(
        ("stacks", "signals", "expected"),
        [
            ([copying(50.0)], small(40.0), "copies_from_pageable_memory"),
            ([seen((own("loss.item()"),), 50.0)], small(40.0), "waits_for_device"),
            ([importing(60.0)], small(40.0), "fixed_costs_dominate"),
            ([], untouched_gpu(), "gpu_never_used"),
        ],
    )
    def test_gives_way_to_what_says_why(self, stacks, signals, expected):
        made = self.made(*stacks, gpus=[signals])
        assert len(judged(batch_small, made)) == 1
        kinds = kinds_of(made)
        assert kinds[0] == expected
        assert "batch_small" not in kinds

    def test_gives_way_to_the_advice_to_leave_the_gpu(self):
        steps = Progress(steps=10_000, first_s=101.0, last_s=108.0)
        torch = ON_GPU | {"parameter_bytes": 400}
        one = process(progress=[steps], loaders=[loader()], torch=torch)
        made = watched(one, parts=[NodePart(NODE, gpus=[small(40.0)])])
        assert len(judged(batch_small, made)) == 1
        assert kinds_of(made) == ["problem_too_small"]
