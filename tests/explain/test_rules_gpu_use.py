"""Rules about how much a GPU was used, on both sides of their thresholds."""

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
    untouched_gpu,
)
from teho.explain.policy import load_policy
from teho.explain.program_context import ProgramContext
from teho.explain.rule import kind_of
from teho.explain.rules.gpu import gpu_low_use, gpu_never_used, gpu_one_idle, gpu_used_only_at_first
from teho.model.finding import Abstention, Severity, Threshold
from teho.units import GIB


class TestNeverUsed:
    def test_names_the_gpu_and_what_to_ask_for(self):
        finding = found(gpu_never_used, scenarios.never_used_gpu())
        assert finding.sentence == "GPU 1 on r01g01 was never used."
        assert finding.severity is Severity.CRITICAL
        assert figures(finding) == {"GPU busy, highest (GPU 1 on r01g01)": 0.0}
        assert "`--gpus-per-node=1`" in finding.action
        assert "--nodes" not in finding.action
        assert "`--gres=gpu:TYPE:1`" in finding.action

    @pytest.mark.parametrize(("peak", "count"), [(0.99, 1), (1.0, 0), (1.01, 0)])
    def test_threshold(self, peak, count):
        made = scenario(NodePart(gpus=[{**untouched_gpu(), "gpu_busy_percent": peak}]))
        assert len(judged(gpu_never_used, made)) == count

    @pytest.mark.parametrize("signal", ["gpu_job_processes", "gpu_job_memory_bytes"])
    def test_a_gpu_with_a_process_of_the_job_is_left_to_other_rules(self, signal):
        made = scenario(NodePart(gpus=[{**untouched_gpu(), signal: 1.0}]))
        assert judged(gpu_never_used, made) == []

    @pytest.mark.parametrize("signal", ["gpu_job_processes", "gpu_job_memory_bytes"])
    def test_unknown_processes_do_not_excuse(self, signal):
        made = scenario(NodePart(gpus=[{**untouched_gpu(), signal: UNSUPPORTED}]))
        assert len(judged(gpu_never_used, made)) == 1

    @pytest.mark.parametrize(("elapsed_s", "abstains"), [(9.0, True), (10.0, False)])
    def test_a_handful_of_samples_proves_nothing(self, elapsed_s, abstains):
        verdict = judged(gpu_never_used, scenario(NodePart(gpus=[untouched_gpu()]),
                                                  elapsed_s=elapsed_s))  # fmt: skip
        assert isinstance(verdict, Abstention) is abstains
        if abstains:
            assert verdict.lacked == "GPU busy of GPU 0 on r01g01: only 9 samples"

    def test_many_gpus_become_one_finding(self):
        finding = found(gpu_never_used, scenarios.never_used_16_gpus())
        assert finding.sentence == (
            "GPUs 0–3 on each of r01g01, r01g02, r01g03 and r01g04 were never used."
        )
        assert figures(finding) == {"GPU busy, highest (each of 16)": 0.0}
        assert "do not request one" in finding.action

    def test_unused_nodes_are_not_asked_for(self):
        parts = [NodePart("r01g01", gpus=[gpu(), gpu()])]
        parts += [NodePart(name, gpus=[untouched_gpu()] * 2) for name in ("r01g02", "r01g03")]
        action = found(gpu_never_used, scenario(*parts)).action
        assert "`--gpus-per-node=2`" in action
        assert "`--nodes=1`" in action

    def test_several_on_one_node_read_well(self):
        made = scenario(NodePart(gpus=[gpu(), untouched_gpu(), untouched_gpu()]))
        assert found(gpu_never_used, made).sentence == "GPUs 1 and 2 on r01g01 were never used."

    def test_grid_engine(self):
        part = NodePart(gpus=[gpu(), untouched_gpu()], scheduler="grid_engine")
        action = found(gpu_never_used, scenario(part)).action
        assert "`-l coproc_v100=1`" in action
        assert "--g" not in action

    @pytest.mark.parametrize(
        ("vendor", "setting"),
        [
            ("nvidia", "`CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,2`"),
            ("amd", "`ROCR_VISIBLE_DEVICES=0,2`"),
        ],
    )
    def test_without_a_scheduler(self, vendor, setting):
        gpus = [gpu(), untouched_gpu(), gpu()]
        part = NodePart(gpus=gpus, scheduler=None, vendor=vendor)
        assert setting in found(gpu_never_used, scenario(part)).action

    def test_mig_instances_go_by_their_ids(self):
        run, summary = scenario(NodePart(gpus=[gpu(), untouched_gpu()], scheduler=None))
        (node,) = summary.nodes
        slices = tuple(
            msgspec.structs.replace(
                one, device=msgspec.structs.replace(one.device, parent_id="GPU-whole")
            )
            for one in node.gpus
        )
        nodes = (msgspec.structs.replace(node, gpus=slices),)
        made = (run, msgspec.structs.replace(summary, nodes=nodes))
        used = slices[0].device.id
        assert f"`CUDA_VISIBLE_DEVICES={used}`" in found(gpu_never_used, made).action

    def test_without_a_scheduler_and_no_gpu_used(self):
        part = NodePart(gpus=[untouched_gpu()], scheduler=None)
        assert "change nothing" in found(gpu_never_used, scenario(part)).action


class TestUsedOnlyAtFirst:
    def test_says_until_when(self):
        finding = found(gpu_used_only_at_first, scenarios.used_at_first())
        assert finding.sentence == (
            "GPU 0 on r01g01 was used for the first 36 min and then idle for the last 40 % "
            "of the run."
        )
        assert finding.severity is Severity.WARNING
        assert figures(finding) == {
            "idle time of the GPU at the end of the run (GPU 0 on r01g01)": pytest.approx(40.0),
            "GPU busy before the idle time (GPU 0 on r01g01)": 94.0,
            "time from the start to the last use of the GPU (GPU 0 on r01g01)": 2160.0,
        }
        assert "`sbatch --dependency=afterok:$SLURM_JOB_ID rest.sh`" in finding.action

    @pytest.mark.parametrize(
        ("idle_bins", "severities"),
        [
            (19, []),
            (20, [Severity.WARNING]),
            (29, [Severity.WARNING]),
            (30, [Severity.CRITICAL]),
            (55, [Severity.CRITICAL]),
        ],
    )
    def test_threshold_of_the_share(self, idle_bins, severities):
        busy = repeated((94.0, BINS - idle_bins), (0.0, idle_bins))
        verdict = judged(gpu_used_only_at_first, scenario(NodePart(gpus=[gpu(busy)])))
        assert [finding.severity for finding in verdict] == severities

    @pytest.mark.parametrize(("rest", "count"), [(9.99, 1), (10.0, 0), (10.01, 0)])
    def test_threshold_of_idle(self, rest, count):
        made = scenario(NodePart(gpus=[gpu(repeated((94.0, 36), (rest, 24)))]))
        assert len(judged(gpu_used_only_at_first, made)) == count

    def test_at_the_very_threshold(self):
        limits = dict(load_policy().of(kind_of(gpu_used_only_at_first)))
        limits["idle_share_percent"] = Threshold(40.0, "%", "this test")
        context = ProgramContext(
            kind_of(gpu_used_only_at_first), *scenarios.used_at_first(), limits
        )
        assert len([*gpu_used_only_at_first.judge(context)]) == 1

    @pytest.mark.parametrize(("used", "count"), [(9.99, 0), (10.0, 1), (10.01, 1)])
    def test_threshold_of_having_been_used(self, used, count):
        made = scenario(NodePart(gpus=[gpu(repeated((used, 20), (0.0, 40)))]))
        assert len(judged(gpu_used_only_at_first, made)) == count

    @pytest.mark.parametrize(("blips", "count"), [(1, 1), (2, 1), (3, 0)])
    def test_threshold_of_blips(self, blips, count):
        # Two busy bins among forty are 5 %.
        busy = repeated((94.0, 20), (0.0, 40 - blips), (94.0, blips))
        verdict = judged(gpu_used_only_at_first, scenario(NodePart(gpus=[gpu(busy)])))
        assert len(verdict) == count

    def test_a_last_evaluation_does_not_hide_it(self):
        made = scenario(NodePart(gpus=[gpu(repeated((94.0, 30), (0.0, 29), (80.0, 1)))]))
        assert "the first 30 min" in found(gpu_used_only_at_first, made).sentence

    @pytest.mark.parametrize(
        "busy",
        [
            repeated((0.0, 30), (94.0, 30)),  # a long start
            repeated((0.0, 60)),  # never used
            repeated((5.0, 30), (0.0, 30)),  # never used to speak of
            [94.0, 0.0] * 30,  # in turns
            [None] * 60,
        ],
    )
    def test_other_patterns_are_not_it(self, busy):
        verdict = judged(gpu_used_only_at_first, scenario(NodePart(gpus=[gpu(busy)])))
        assert verdict == [] or isinstance(verdict, Abstention)

    def test_an_unrecorded_end_is_not_idle(self):
        made = scenario(NodePart(gpus=[gpu(repeated((94.0, 35), (0.0, 5), (None, 20)))]))
        assert judged(gpu_used_only_at_first, made) == []

    def test_gaps_within_are_neither_idle_nor_busy(self):
        busy = repeated((94.0, 20), (None, 5), (94.0, 5), (0.0, 10), (None, 5), (0.0, 15))
        finding = found(gpu_used_only_at_first, scenario(NodePart(gpus=[gpu(busy)])))
        idle = figures(finding)["idle time of the GPU at the end of the run (GPU 0 on r01g01)"]
        assert idle == pytest.approx(100 * 25 / 60)

    def test_two_severities_become_two_findings(self):
        gpus = [gpu(repeated((94.0, at), (0.0, BINS - at))) for at in (38, 36, 20)]
        verdict = judged(gpu_used_only_at_first, scenario(NodePart(gpus=gpus)))
        assert [(finding.severity, finding.sentence[:28]) for finding in verdict] == [
            (Severity.CRITICAL, "GPU 2 on r01g01 was used for"),
            (Severity.WARNING, "GPUs 0 and 1 on r01g01 were "),
        ]
        assert "for the first 36 min to 38 min" in verdict[1].sentence

    @pytest.mark.parametrize(
        ("scheduler", "text"),
        [
            ("grid_engine", "`qsub -hold_jid $JOB_ID rest.sh`"),
            (None, "run the remaining work separately"),
        ],
    )
    def test_other_schedulers(self, scheduler, text):
        part = NodePart(gpus=[gpu(repeated((94.0, 36), (0.0, 24)))], scheduler=scheduler)
        assert text in found(gpu_used_only_at_first, scenario(part)).action


class TestLowUse:
    @pytest.mark.parametrize(
        ("mean", "severity"),
        [
            (14.99, Severity.CRITICAL),
            (15.0, Severity.CRITICAL),
            (15.01, Severity.WARNING),
            (25.0, Severity.WARNING),
            (25.01, Severity.REMARK),
            (49.99, Severity.REMARK),
            (50.0, None),
            (50.01, None),
        ],
    )
    def test_thresholds(self, mean, severity):
        verdict = judged(gpu_low_use, scenario(NodePart(gpus=[gpu(mean)])))
        assert [finding.severity for finding in verdict] == ([severity] if severity else [])

    def test_cites_the_source_of_its_band(self):
        finding = found(gpu_low_use, scenarios.low_use())
        assert finding.sentence == "GPUs 0–3 on r01g01 were busy only 20 % of the time."
        assert [(limit.value, limit.source.split(",")[0].split(":")[0]) for limit in
                finding.thresholds] == [(25.0, "Jobstats"), (50.0, "CSC")]  # fmt: skip

    def test_the_number_of_workers_comes_from_the_cores(self):
        finding = found(gpu_low_use, scenarios.low_use())
        assert "DataLoader(num_workers=9," in finding.action  # 40 cores ÷ 4 GPUs - 1

    def test_four_gpus_are_all_among_the_evidence_and_equal_figures_once(self):
        different = scenario(NodePart(gpus=[gpu(float(busy)) for busy in (11, 12, 13, 14)]))
        assert len(figures(found(gpu_low_use, different))) == 8
        assert figures(found(gpu_low_use, scenarios.low_use())) == {
            "GPU busy, mean (each of 4)": 20.0,
            "GPU busy, highest (each of 4)": 20.0,
        }

    def test_a_run_of_no_length_is_not_judged(self):
        made = scenario(NodePart(gpus=[gpu(20.0)]), elapsed_s=0.0)
        assert judged(gpu_low_use, made).lacked.endswith("recorded for only 0 ms of 0 ms")

    def test_one_core_still_gets_one_worker(self):
        made = scenario(NodePart(cores=1, gpus=[gpu(20.0)]))
        finding = found(gpu_low_use, made)
        assert "num_workers=1," in finding.action
        assert "fewer GPUs" not in finding.action

    def test_what_was_not_seen_is_among_the_evidence(self):
        made = scenario(NodePart(gpus=[gpu(20.0), gpu(UNSUPPORTED)]))
        assert (
            figures(found(gpu_low_use, made))["not judged: GPU busy (GPU 1 on r01g01)"]
            == UNSUPPORTED
        )

    @pytest.mark.parametrize(("seen_bins", "judges"), [(29, False), (30, True)])
    def test_less_than_half_of_the_run_is_not_judged(self, seen_bins, judges):
        busy = repeated((20.0, seen_bins), (None, BINS - seen_bins))
        verdict = judged(gpu_low_use, scenario(NodePart(gpus=[gpu(busy)])))
        assert isinstance(verdict, list) is judges

    def test_a_lost_gpu_says_how_much_of_it_was_seen(self):
        verdict = judged(gpu_low_use, scenarios.lost_gpu())
        assert verdict.lacked == (
            "GPU busy of GPU 1 on r01g01: this signal was recorded for only 20 min of 1 h"
        )


class TestOneIdle:
    def test_one_of_several(self):
        finding = found(gpu_one_idle, scenarios.one_idle_gpu())
        assert finding.sentence == "GPU 1 on r01g01 was idle while 3 other GPUs worked."
        assert finding.severity is Severity.CRITICAL
        held = "memory used by the program on the GPU (GPU 1 on r01g01)"
        assert figures(finding)[held] == 16.5 * GIB
        assert "`torchrun --nproc-per-node=4`" in finding.action
        assert "`--gpus-per-node=3`" in finding.action

    @pytest.mark.parametrize(("rest", "count"), [(9.99, 1), (10.0, 0), (10.01, 0)])
    def test_threshold_of_idle(self, rest, count):
        assert len(judged(gpu_one_idle, scenario(NodePart(gpus=[gpu(), gpu(rest)])))) == count

    @pytest.mark.parametrize(("work", "count"), [(24.99, 0), (25.0, 1), (25.01, 1)])
    def test_threshold_of_the_others(self, work, count):
        made = scenario(NodePart(gpus=[gpu(work), gpu(0.0)]))
        assert len(judged(gpu_one_idle, made)) == count

    def test_a_busy_gpu_on_another_node_is_a_neighbour(self):
        made = scenario(NodePart("r01g01", gpus=[gpu()]), NodePart("r01g02", gpus=[gpu(0.0)]))
        finding = found(gpu_one_idle, made)
        assert finding.sentence == "GPU 0 on r01g02 was idle while another GPU worked."
        assert "`srun --ntasks-per-node=1 teho launch -- CMD`" in finding.action
        assert "with `--nodes=1`" in finding.action

    def test_without_slurm_torchrun_names_its_nodes(self):
        parts = [NodePart(name, gpus=[gpu(busy)] * 2, scheduler="grid_engine")
                 for name, busy in (("r01g01", 90.0), ("r01g02", 0.0))]  # fmt: skip
        action = found(gpu_one_idle, scenario(*parts)).action
        assert "`torchrun --nnodes=2 --nproc-per-node=2`" in action

    def test_two_idle_and_one_working(self):
        made = scenario(NodePart(gpus=[gpu(), gpu(0.0), gpu(0.0)]))
        expected = "GPUs 1 and 2 on r01g01 were idle while another GPU worked."
        assert found(gpu_one_idle, made).sentence == expected

    def test_abstains_if_a_neighbour_was_not_seen(self):
        made = scenario(NodePart(gpus=[gpu(), gpu(UNSUPPORTED)]))
        assert isinstance(judged(gpu_one_idle, made), Abstention)
