"""Programs that are bound to too few cores, on both sides of the thresholds."""

from __future__ import annotations

import pytest

from explain.program_parts import (
    NODE,
    process,
    watched,
)
from explain.scenario_parts import (
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    judged,
    kinds_of,
    scenario,
)
from teho.explain.rules.cpu import (
    bound_to_few_cores,
    too_many_threads,
)
from teho.model.allocation import Allocation
from teho.model.finding import Abstention, Severity


class TestBinding:
    @staticmethod
    def made(*cores, used=4.0, of=8):
        ranks = [process(pid=10 + n, cores=own_cores) for n, own_cores in enumerate(cores)]
        return watched(*ranks, parts=[NodePart(NODE, cores=of, cores_used=used)])

    @pytest.mark.parametrize(("used", "count"), [(3.19, 0), (3.21, 1)])
    def test_threshold_of_the_use(self, used, count):
        assert len(judged(bound_to_few_cores, self.made((0, 1, 2, 3), used=used))) == count

    @pytest.mark.parametrize(("of", "count"), [(40, 0), (39, 1), (32, 1), (31, 1)])
    def test_threshold_of_the_loss(self, of, count):
        cores = tuple(range(of - (4 if count else 3)))
        assert len(judged(bound_to_few_cores, self.made(cores, used=of, of=of))) == count

    def test_names_the_cores(self):
        finding = found(bound_to_few_cores, self.made((0, 1, 2, 3)))
        assert finding.sentence == (
            f"On {NODE} the program can use only 4 of the job's 8 cores, and needs more cores."
        )
        assert figures(finding)["numbers of the cores that the program can use"] == "0–3"
        assert figures(finding)["slowest line"] == "train.py:12  loss.backward()"
        assert finding.regain_percent == (0.0, 50.0)

    def test_ranks_that_are_bound_to_different_cores_use_all(self):
        assert judged(bound_to_few_cores, self.made((0, 1, 2, 3), (4, 5, 6, 7), used=8.0)) == []
        assert len(judged(bound_to_few_cores, self.made((0, 1), (0, 1), used=2.0))) == 1

    @pytest.mark.parametrize("cores", [None, ()])
    def test_unknown_binding(self, cores):
        assert judged(bound_to_few_cores, self.made(cores)) == []
        assert judged(bound_to_few_cores, self.made((0,), None)) == []
        assert judged(bound_to_few_cores, self.made((0,), used=UNSUPPORTED)) == []


class TestBindingWithoutTheProbe:
    """The scheduler gave more cores than the program might run on when recording began."""

    @staticmethod
    def made(cores, asked, used, threads=30.0, *, elapsed_s=3600.0, **changes):
        given = Allocation(**{"scheduler": "slurm", "cores_asked": asked} | changes)
        signals = {"job_runnable_threads": threads}
        part = NodePart(NODE, cores=cores, cores_used=used, signals=signals, allocation=given)
        return scenario(part, elapsed_s=elapsed_s)

    def test_says_so(self):
        finding = found(bound_to_few_cores, self.made(1, 40, 1.0))
        assert finding.sentence == (
            f"On {NODE} the program can use only 1 of the job's 40 cores, and needs more cores."
        )
        assert figures(finding)["numbers of the cores that the program can use"] == "0"
        assert finding.severity is Severity.CRITICAL

    @pytest.mark.parametrize(("used", "count"), [(2.39, 0), (2.41, 1)])
    def test_threshold_of_the_use(self, used, count):
        assert len(judged(bound_to_few_cores, self.made(3, 40, used))) == count

    @pytest.mark.parametrize(("cores", "count"), [(37, 0), (35, 1)])
    def test_threshold_of_the_share(self, cores, count):
        assert len(judged(bound_to_few_cores, self.made(cores, 40, 40.0))) == count

    @pytest.mark.parametrize(("elapsed_s", "count"), [(2.0, 0), (2.1, 1)])
    def test_threshold_of_the_loss(self, elapsed_s, count):
        one = self.made(1, 40, 1.0, elapsed_s=elapsed_s)
        assert len(judged(bound_to_few_cores, one)) == count

    @pytest.mark.parametrize(("threads", "count"), [(1.25, 0), (1.26, 1), (1.81, 1)])
    def test_half_of_the_cores_may_be_one_thread_of_each(self, threads, count):
        assert len(judged(bound_to_few_cores, self.made(1, 2, 0.99, threads))) == count
        assert judged(too_many_threads, self.made(1, 2, 0.99, threads)) == []

    def test_abstains_if_threads_are_not_known_there(self):
        one = self.made(1, 2, 0.99, UNSUPPORTED)
        assert isinstance(judged(bound_to_few_cores, one), Abstention)

    @pytest.mark.parametrize(
        "change", [{"scheduler": None}, {"scheduler": "local"}, {"cores_asked": None}]
    )
    def test_only_a_scheduler_s_count_counts(self, change):
        assert judged(bound_to_few_cores, self.made(1, 40, 1.0, **change)) == []

    def test_the_binding_is_the_only_finding(self):
        one = self.made(1, 4, 0.99, 3.5)
        kinds = kinds_of(one)
        assert "bound_to_few_cores" in kinds
        assert not {"too_many_threads", "serial_program", "cores_unused"} & set(kinds)


class TestBindingOfItself:
    """The recorder saw all cores of the job, and the program then bound itself to one of two."""

    def test_it_is_found(self):
        part = NodePart(NODE, cores=2, cores_used=0.99, signals={"job_runnable_threads": 1.81})
        one = watched(process(cores=(1,)), parts=[part])
        assert found(bound_to_few_cores, one).sentence == (
            f"On {NODE} the program can use only 1 of the job's 2 cores, and needs more cores."
        )
        kinds = kinds_of(one)
        assert "bound_to_few_cores" in kinds
        assert not {"too_many_threads", "serial_program", "cores_unused"} & set(kinds)
