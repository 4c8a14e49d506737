"""GPUs that are little used together while much is exchanged, on both sides of the thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain import program_scenarios, scenarios
from explain.program_parts import of_library, own, process, seen, watched
from explain.scenario_parts import (
    BINS,
    FORBIDDEN,
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    repeated,
    scenario,
)
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.job import communication_bound, gradients_exchanged_often
from teho.model.finding import Abstention, Severity

MB = 1e6


class TestGradientsExchangedOften:
    def exchanging(self, per_step, backward_s=60.0, world_size=2):
        below = (of_library("torch/_tensor.py", "Tensor.backward"), own("loss.backward()", 25))
        facts = {"rank": 0, "world_size": world_size, "exchanges_per_step": per_step}
        return watched(process(seen(below, backward_s), torch=facts))

    def test_says_how_often_and_where(self):
        finding = found(gradients_exchanged_often, program_scenarios.exchanges_each_time())
        assert finding.sentence == (
            "The ranks exchanged gradients 4 times for each step of the optimizer. Once is enough."
        )
        assert "`with model.no_sync():`" in finding.action
        assert figures(finding)["slowest line"] == "train.py:25  loss.backward()"
        assert finding.regain_percent == (0.0, 22.5)

    @pytest.mark.parametrize(
        ("per_step", "backward_s", "world_size", "count"),
        [
            (1.89, 60.0, 2, 0), (1.9, 60.0, 2, 1),
            (2.0, 39.9, 2, 0), (2.0, 40.0, 2, 1),  # a quarter of it is 10 % of the time
            (4.0, 60.0, 1, 0), (None, 60.0, 2, 0),
        ],
    )  # fmt: skip
    def test_thresholds(self, per_step, backward_s, world_size, count):
        made = self.exchanging(per_step, backward_s, world_size)
        assert len(judged(gradients_exchanged_often, made)) == count


def nodes(busy=30.0, watt=215.0, *, gpus=2, count=2, limit_w=700.0, **rates):
    """Make a run of like nodes; `rates` are `receive`, `send`, `read`, `write`, in bytes/s."""
    named = {"receive": "net_receive", "send": "net_send", "read": "netfs_read",
             "write": "netfs_write"}  # fmt: skip
    signals = {"receive": 500 * MB, "send": 500 * MB, **rates}
    rates = {f"{named[name]}_bytes": rate for name, rate in signals.items() if rate != ()}
    of_node = [gpu(busy, gpu_power_w=watt) for _ in range(gpus)]
    return scenario(
        *(
            NodePart(f"r01g0{number}", gpus=of_node, rates=rates, power_limit_w=limit_w)
            for number in range(1, count + 1)
        )
    )


def count_of(made):
    verdict = judged(communication_bound, made)
    assert isinstance(verdict, list), verdict
    return len(verdict)


def test_says_how_long_and_how_much():
    finding = found(communication_bound, scenarios.waiting_for_the_network())
    assert finding.sentence == (
        "For 100 % of the time, all 8 GPUs were busy, but used little power. "
        "During this time, each node exchanged 1,001 MiB/s with the other nodes."
    )
    assert finding.severity is Severity.WARNING
    evidence = figures(finding)
    assert evidence["data that each node exchanged in each direction during this time"] == 1.05e9
    assert evidence["GPU power, mean (each of 8)"] == 215
    assert "`NET/Socket`" in finding.action


@pytest.mark.parametrize(("busy", "count"), [(49.9, 1), (50.0, 0)])
def test_threshold_of_busy(busy, count):
    assert count_of(nodes(busy, 600.0)) == count


@pytest.mark.parametrize(("watt", "count"), [(349.0, 1), (350.0, 0)])
def test_threshold_of_power(watt, count):
    assert count_of(nodes(99.0, watt)) == count


def test_without_a_power_limit_only_busy_counts():
    assert count_of(nodes(99.0, 100.0, limit_w=None)) == 0
    assert count_of(nodes(30.0, 100.0, limit_w=None)) == 1


@pytest.mark.parametrize(
    ("rate", "severity"),
    [
        (99 * MB, None),
        (100 * MB, Severity.REMARK),
        (999 * MB, Severity.REMARK),
        (1000 * MB, Severity.WARNING),
    ],
)
def test_thresholds_of_traffic(rate, severity):
    verdict = judged(communication_bound, nodes(receive=rate, send=rate))
    assert [finding.severity for finding in verdict] == ([severity] if severity else [])


@pytest.mark.parametrize(("bins", "count"), [(30, 0), (31, 1)])
def test_threshold_of_time(bins, count):
    busy = repeated((30.0, bins), (95.0, BINS - bins))
    assert count_of(nodes(busy, 600.0)) == count
    rates = repeated((500 * MB, bins), (0.0, BINS - bins))
    assert count_of(nodes(receive=rates, send=rates)) == count


@pytest.mark.parametrize(("others", "count"), [(8, 0), (9, 1)])
def test_threshold_of_together(others, count):
    gpus = [gpu(30.0)] * others + [gpu(95.0)] * (10 - others)
    rates = {"net_receive_bytes": 500 * MB, "net_send_bytes": 500 * MB}
    parts = [NodePart("a", gpus=gpus, rates=rates), NodePart("b", gpus=gpus, rates=rates)]
    assert count_of(scenario(*parts)) == count


def test_waiting_in_turns_is_not_waiting_together():
    first, second = [30.0, 95.0] * 30, [95.0, 30.0] * 30
    rates = {"net_receive_bytes": 500 * MB, "net_send_bytes": 500 * MB}
    parts = [
        NodePart(name, gpus=[gpu(busy)] * 2, rates=rates)
        for name, busy in (("a", first), ("b", second))
    ]
    assert count_of(scenario(*parts)) == 0


class TestDataLoading:
    def test_a_data_set_from_the_network_goes_one_way(self):
        assert count_of(nodes(receive=2000 * MB, send=20 * MB)) == 0

    def test_a_checkpoint_goes_the_other_way(self):
        assert count_of(nodes(receive=20 * MB, send=2000 * MB)) == 0

    def test_file_systems_are_not_the_other_nodes(self):
        # Reads and writes of NFS account for all but 50 MB/s of it.
        made = nodes(receive=550 * MB, send=550 * MB, read=500 * MB, write=500 * MB)
        assert count_of(made) == 0

    @pytest.mark.parametrize(("read", "count"), [(249 * MB, 1), (251 * MB, 0)])
    def test_if_more_is_read_than_exchanged_files_explain_it(self, read, count):
        assert count_of(nodes(receive=500 * MB, send=900 * MB, read=read)) == count

    def test_unknown_file_systems_do_not_hide_an_exchange(self):
        assert count_of(nodes(read=FORBIDDEN, write=FORBIDDEN)) == 1

    def test_storage_that_explains_the_waiting_mutes_it(self):
        rates = {"net_receive_bytes": 500 * MB, "net_send_bytes": 500 * MB}
        signals = {"cpu_iowait_percent": 80.0}
        parts = [
            NodePart(name, gpus=[gpu(5.0)] * 2, rates=rates, signals=signals) for name in ("a", "b")
        ]
        findings, _ = judge_all(*scenario(*parts), load_policy())
        assert [finding.kind for finding in findings] == ["gpu_low_use", "io_wait_gpu_idle"]

    def test_one_node_that_waits_for_storage_does_not_acquit_the_other(self):
        rates = {"net_receive_bytes": 500 * MB, "net_send_bytes": 500 * MB}
        slow = {"cpu_iowait_percent": 80.0}
        parts = [
            NodePart("a", gpus=[gpu(5.0)] * 2, rates=rates, signals=slow),
            NodePart("b", gpus=[gpu(5.0)] * 2, rates=rates),
        ]
        findings, _ = judge_all(*scenario(*parts), load_policy())
        (finding,) = (one for one in findings if one.kind == "communication_bound")
        assert "all 2 GPUs had little work. During this time, each node" in finding.sentence


class TestOneNode:
    def bus(self, into, out, busy=30.0):
        signals = {
            "gpu_pcie_receive_bytes_per_s": into,
            "gpu_pcie_send_bytes_per_s": out,
        }
        return scenario(NodePart(gpus=[gpu(busy, **signals) for _ in range(4)]))

    @pytest.mark.parametrize(("rate", "count"), [(999 * MB, 0), (1000 * MB, 1)])
    def test_threshold_of_the_bus(self, rate, count):
        assert count_of(self.bus(rate, rate)) == count

    def test_data_for_the_gpu_go_one_way(self):
        assert count_of(self.bus(5000 * MB, 100 * MB)) == 0

    def test_names_the_owner_of_the_traffic(self):
        finding = found(communication_bound, self.bus(2000 * MB, 2500 * MB))
        assert finding.sentence.endswith("each GPU exchanged 1.86 GiB/s with the other GPUs.")
        assert "`nvidia-smi topo -m`" in finding.action

    def test_without_figures_of_the_bus_it_abstains(self):
        unknown = gpu(20.0, gpu_pcie_receive_bytes_per_s=UNSUPPORTED)
        verdict = judged(communication_bound, scenario(NodePart(gpus=[unknown] * 4)))
        assert isinstance(verdict, Abstention)
        assert "PCIe to the GPU" in verdict.lacked

    def test_a_single_gpu_waits_for_no_other(self):
        assert count_of(scenario(NodePart(gpus=[gpu(20.0)]))) == 0


class TestCardsOfTwoDies:
    def card(self, watt):
        """Two nodes with one MI250X each, whose second die reports no power."""
        dies = [gpu(95.0, gpu_power_w=watt), gpu(95.0, gpu_power_w=UNSUPPORTED)]
        run, summary = scenario(
            *(
                NodePart(name, gpus=dies, vendor="amd", power_limit_w=560.0,
                         rates={"net_receive_bytes": 500 * MB, "net_send_bytes": 500 * MB})
                for name in ("r01g01", "r01g02")
            )
        )  # fmt: skip
        return run, msgspec.structs.replace(
            summary, nodes=tuple(self.packaged(node) for node in summary.nodes)
        )

    def packaged(self, node):
        of_card = [
            msgspec.structs.replace(
                die, device=msgspec.structs.replace(die.device, package_id="c1", energy_of=kind)
            )
            for die, kind in zip(node.gpus, ("package", "device"), strict=True)
        ]
        return msgspec.structs.replace(node, gpus=tuple(of_card))

    @pytest.mark.parametrize(("watt", "count"), [(200.0, 1), (400.0, 0)])
    def test_a_silent_die_waits_as_its_card_does(self, watt, count):
        """Without that nothing could be said of any MI250X."""
        assert count_of(self.card(watt)) == count


class TestMissing:
    @pytest.mark.parametrize("which", ["receive", "send"])
    def test_without_the_network_it_abstains(self, which):
        verdict = judged(communication_bound, nodes(**{which: UNSUPPORTED}))
        assert isinstance(verdict, Abstention)
        assert "network" in verdict.lacked

    def test_gpus_that_work_need_no_network(self):
        assert count_of(nodes(95.0, 600.0, receive=UNSUPPORTED)) == 0

    def test_unseen_gpus_are_not_judged(self):
        made = nodes(UNSUPPORTED)
        assert isinstance(judged(communication_bound, made), Abstention)

    def test_gaps_do_not_count(self):
        busy = repeated((30.0, 20), (None, 20), (30.0, 20))
        assert count_of(nodes(busy)) == 1
        rates = repeated((500 * MB, 30), (None, 30))
        assert count_of(nodes(receive=rates, send=rates)) == 1
