"""Causes that lie with the data: files, storage, single samples, and one rank's part of them."""

from __future__ import annotations

import pytest

from explain.program_parts import (
    alone,
    fetching,
    idle,
    in_worker,
    loader,
    opening,
    process,
    watched,
    with_workers,
)
from explain.scenario_parts import FORBIDDEN, NodePart, figures, found, judged
from teho.explain.rules.input import (
    input_of_one_rank_slower,
    input_read_again,
    input_skewed,
    input_small_files,
)
from teho.model.finding import Abstention
from teho.units import GIB

MIB = 1024**2


def node(**totals):
    """Return a node of eight cores with these counters."""
    made = {"cores": 8, "cores_used": 4.0, "memory_limit": 10.0 * GIB}
    return NodePart(**made | {"rates": {name: value / 3600 for name, value in totals.items()}})


class TestSmallFiles:
    PARTS = (node(job_read_calls_bytes=3200 * 4096.0),)
    """100 batches of 32 samples, of 4 KiB."""

    @pytest.mark.parametrize(("opens_s", "count"), [(19.9, 0), (20.0, 1)])
    def test_threshold_of_the_time(self, opens_s, count):
        made = alone(opening(opens_s), fetching(40.0 - opens_s), parts=self.PARTS)
        verdict = judged(input_small_files, made)
        assert len(verdict) == count
        if verdict:
            assert figures(verdict[0])["data read for each sample"] == pytest.approx(4096)
            assert verdict[0].regain_percent == (10.0, 20.0)

    @pytest.mark.parametrize("netfs_bytes", [0.0, None, 3600.0])
    def test_says_what_came_over_the_network(self, netfs_bytes):
        known = {} if netfs_bytes is None else {"netfs_read_bytes": netfs_bytes}
        part = node(job_read_calls_bytes=3200 * 4096.0, **known)
        finding = found(input_small_files, alone(opening(40.0), parts=[part]))
        said = {"data read from NFS and Lustre": netfs_bytes} if netfs_bytes else {}
        assert figures(finding).items() >= said.items()
        assert ("data read from NFS and Lustre" in figures(finding)) is bool(netfs_bytes)
        assert finding.action.startswith("At the start of the job, unpack an archive of the files")
        assert "`teho pack FOLDER packed`" in finding.action
        assert '`teho.feed.packed("packed")`' in finding.action

    def test_in_workers(self):
        below = in_worker()
        made = with_workers(opening(20.0, below), fetching(5.0, below), idle(9.0), parts=self.PARTS)
        assert figures(found(input_small_files, made))[
            "share of the loading time spent on opening and reading files"
        ] == pytest.approx(80.0)

    @pytest.mark.parametrize(("sample_bytes", "count"), [(1.0 * MIB, 1), (1.01 * MIB, 0)])
    def test_threshold_of_the_size(self, sample_bytes, count):
        part = node(job_read_calls_bytes=3200 * sample_bytes - 1)
        assert len(judged(input_small_files, alone(opening(40.0), parts=[part]))) == count

    def test_what_all_ranks_of_a_node_read_is_for_the_samples_of_all(self):
        ranks = [process(opening(40.0), pid=10 + n, loaders=[loader()]) for n in range(4)]
        part = node(job_read_calls_bytes=4 * 3200 * 0.9 * MIB)
        assert len(judged(input_small_files, watched(*ranks, parts=[part]))) == 1

    def test_abstains_if_their_size_is_unknown(self):
        verdict = judged(input_small_files, alone(opening(40.0)))
        assert isinstance(verdict, Abstention)
        assert verdict.lacked.startswith("job read calls of r01g01: ")

    def test_but_only_where_files_are_opened(self):
        assert judged(input_small_files, alone(fetching(40.0))) == []

    def test_samples_that_cannot_be_counted(self):
        made = alone(opening(40.0), batch_size=None, parts=self.PARTS)
        assert judged(input_small_files, made) == []


class TestReadAgain:
    @pytest.mark.parametrize(("read_gib", "count"), [(14.99, 0), (15.01, 1)])
    def test_threshold(self, read_gib, count):
        made = alone(fetching(40.0), parts=[node(job_read_bytes=read_gib * GIB)])
        assert len(judged(input_read_again, made)) == count

    @pytest.mark.parametrize(("epochs", "count"), [(1, 0), (2, 1)])
    def test_once_is_not_again(self, epochs, count):
        made = alone(fetching(40.0), epochs=epochs, parts=[node(job_read_bytes=20.0 * GIB)])
        assert len(judged(input_read_again, made)) == count

    def test_says_how_much(self):
        finding = found(
            input_read_again, alone(fetching(40.0), parts=[node(job_read_bytes=20.0 * GIB)])
        )
        assert "and read 20.0 GiB from storage: 10.0 GiB of memory is too" in finding.sentence
        assert finding.regain_percent == (0.0, 40.0)

    @pytest.mark.parametrize(
        ("part", "lacked"),
        [
            (node(), "job read from storage of r01g01"),
            (
                NodePart(
                    cores=8,
                    cores_used=4.0,
                    memory_limit=FORBIDDEN,
                    rates={"job_read_bytes": 20.0 * GIB},
                ),
                "memory limit of r01g01",
            ),
        ],
    )
    def test_abstains_if_the_question_arises(self, part, lacked):
        verdict = judged(input_read_again, alone(fetching(40.0), parts=[part]))
        assert isinstance(verdict, Abstention)
        assert verdict.lacked.startswith(lacked)
        assert judged(input_read_again, alone(fetching(40.0), epochs=1, parts=[part])) == []
        assert judged(input_read_again, alone(fetching(4.0), parts=[part])) == []


class TestSkewed:
    @staticmethod
    def made(waits, workers=0):
        return alone(fetching(40.0), waits=waits, num_workers=workers)

    @pytest.mark.parametrize(("place", "count"), [(12, 0), (13, 1)])
    def test_threshold_of_the_length(self, place, count):
        waits = {10: (990, 1.0), place: (10, 30.0)}
        assert len(judged(input_skewed, self.made(waits))) == count

    @pytest.mark.parametrize(("long_s", "count"), [(13.1, 0), (13.2, 1)])
    def test_threshold_of_their_share(self, long_s, count):
        verdict = judged(input_skewed, self.made({10: (990, 1.0), 20: (10, long_s)}))
        assert len(verdict) == count
        if verdict:
            assert "A few batches (1 %) caused 33 % of this waiting" in verdict[0].sentence
            assert verdict[0].regain_percent == (6.6, 13.2)

    @pytest.mark.parametrize(("rare", "count"), [(200, 1), (201, 0)])
    def test_threshold_of_how_rare_they_are(self, rare, count):
        waits = {10: (1000 - rare, 1.0), 20: (rare, 30.0)}
        assert len(judged(input_skewed, self.made(waits))) == count

    @pytest.mark.parametrize(("others", "count"), [(18, 0), (19, 1)])
    def test_threshold_of_the_batches(self, others, count):
        assert len(judged(input_skewed, self.made({10: (others, 1.0), 20: (1, 30.0)}))) == count

    @pytest.mark.parametrize(("workers", "count"), [(5, 1), (6, 0), (8, 0)])
    def test_one_long_wait_for_all_workers_together_is_their_pace(self, workers, count):
        waits = {10: (900, 1.0), 20: (100, 30.0)}
        assert len(judged(input_skewed, self.made(waits, workers))) == count

    def test_prefetches_more(self):
        finding = found(input_skewed, self.made({10: (990, 1.0), 20: (10, 30.0)}))
        assert "`DataLoader(…, num_workers=7, prefetch_factor=8)` in train.py:8." in finding.action

    def test_not_with_another_librarys_settings(self):
        given = loader(waits={10: (990, 1.0), 20: (10, 30.0)})
        given.settings.clear()
        made = watched(process(fetching(40.0), loaders=[given]))
        assert found(input_skewed, made).action == (
            "Find the samples that take long to load, and prepare them before the job."
        )


class TestOneRank:
    @staticmethod
    def made(*waits_s, size=None, numbers=None, wall_s=None):
        size = len(waits_s) if size is None else size
        return watched(
            *(
                process(
                    fetching(waits),
                    pid=10 + n,
                    wall_s=wall_s[n] if wall_s else 100.0,
                    loaders=[loader()],
                    torch={"rank": numbers[n] if numbers else n, "world_size": size},
                )
                for n, waits in enumerate(waits_s)
            )
        )

    def test_names_it(self):
        finding = found(input_of_one_rank_slower, self.made(5.0, 45.0, 6.0, 7.0))
        assert finding.sentence == (
            "Rank 1 on r01g01 delayed the other ranks: this rank waited for data 45 % of the time, "
            "and the other ranks waited only 6 %."
        )
        assert finding.regain_percent == (19.5, 39.0)

    @pytest.mark.parametrize(("slow_s", "count"), [(14.9, 0), (15.0, 1)])
    def test_threshold(self, slow_s, count):
        assert len(judged(input_of_one_rank_slower, self.made(5.0, slow_s))) == count

    @pytest.mark.parametrize(
        "facts",
        [
            {"size": 1, "numbers": (0, 0)},  # programs beside each other
            {"size": 0},
            {"size": 2, "numbers": (0, 0)},  # stages, one after the other
            {"size": 2, "wall_s": (100.0, 49.0)},
        ],
    )
    def test_not_of_ranks_that_are_no_group(self, facts):
        assert judged(input_of_one_rank_slower, self.made(5.0, 45.0, **facts)) == []

    def test_not_if_the_processes_are_not_known_as_ranks(self):
        ranks = [process(fetching(s), pid=9 + s, loaders=[loader()]) for s in (5, 45)]
        assert judged(input_of_one_rank_slower, watched(*ranks)) == []

    def test_not_of_groups_of_several_sizes(self):
        ranks = [
            process(fetching(s), pid=9 + s, loaders=[loader()], torch={"rank": 0, "world_size": n})
            for s, n in ((5, 2), (45, 4))
        ]
        assert judged(input_of_one_rank_slower, watched(*ranks)) == []
