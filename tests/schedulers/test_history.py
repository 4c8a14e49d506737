"""How long the user's past jobs waited: from sacct and qacct, and for a plan's option."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from teho.clusters.catalogue import load_cluster
from teho.errors import NoAnswerError
from teho.model.plan import Answer, Option, PastJob, PastWait
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.command import Completed
from teho.schedulers.history import past_wait, with_past_waits
from teho.schedulers.registry import scheduler_of
from teho.show.build.plan_words import waiting_words

SACCT = """\
gpu|billing=78,cpu=10,gres/gpu:v100=1,mem=80G,node=1|2026-11-01T10:00:00|2026-11-01T10:12:00
gpu|cpu=10,gres/gpu=2,node=1|2026-11-02T10:00:00|2026-11-02T12:00:00
small|cpu=4,mem=8G,node=1|2026-11-03T10:00:00|2026-11-03T10:00:05
gpu||2026-11-04T10:00:00|Unknown
gpu|cpu=10,gres/gpu=1|Unknown|None
gpu|cpu=10,gres/gpu=1|2026-11-05T11:00:00|2026-11-05T10:00:00
sacct: a line of the site
"""


def gpu_option() -> Option:
    wanted = Request(command=("true",), partition="gpu", account="p")
    return answer(wanted, [load_cluster("puhti")], even_if_retired=True).options[0]


class Stub:
    """Runs no command: gives one answer, and keeps the commands."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.commands: list[tuple[str, ...]] = []

    def __call__(self, argv: Sequence[str], /, **_: Any) -> Completed:
        self.commands.append(tuple(argv))
        if isinstance(self.answer, Exception):
            raise self.answer
        return Completed(tuple(argv), 0, self.answer, "")


def test_slurm_reads_only_jobs_that_have_started() -> None:
    ask = Stub(SACCT)
    assert scheduler_of("slurm").past_jobs(ask, "me", 90 * 86400.0) == (
        PastJob(partition="gpu", gpus=1, cores=10, wait_s=720.0),
        PastJob(partition="gpu", gpus=2, cores=10, wait_s=7200.0),
        PastJob(partition="small", gpus=0, cores=4, wait_s=5.0),
    )
    ((*_, user, start, _format),) = ask.commands
    assert (user, start) == ("--user=me", "--starttime=now-2160hours")


@pytest.mark.parametrize("scheduler", ["slurm", "grid_engine", "local"])
@pytest.mark.parametrize("answer", ["", NoAnswerError("no answer in 5 s")])
def test_without_accounting_no_job_is_known(scheduler: str, answer: str | Exception) -> None:
    assert scheduler_of(scheduler).past_jobs(Stub(answer), "me", 86400.0) == ()


def jobs(*waits_s: float, **fields: Any) -> list[PastJob]:
    plain = {"partition": "gpu", "gpus": 1, "cores": 10, **fields}
    return [PastJob(wait_s=wait_s, **plain) for wait_s in waits_s]


def test_a_median_needs_five_similar_jobs() -> None:
    option = gpu_option()
    assert past_wait(jobs(1, 2, 3, 4), option) is None
    found = past_wait(jobs(10, 20, 30, 40, 1000), option)
    assert found is not None
    assert (found.median_s, found.most_s, found.jobs) == (30, 1000, 5)


@pytest.mark.parametrize("fields", [{"partition": "gputest"}, {"gpus": 3}, {"gpus": 0}], ids=str)
def test_other_jobs_are_not_similar(fields: dict[str, Any]) -> None:
    option = gpu_option()
    assert past_wait(jobs(*range(9), **fields), option) is None
    assert past_wait(jobs(*range(9), gpus=2), option), "twice the GPUs is similar"


def test_only_options_of_this_cluster_without_an_estimate_are_filled() -> None:
    option = gpu_option()
    other = msgspec.structs.replace(option, cluster="mahti")
    ask = Stub("\n".join([SACCT.splitlines()[0]] * 5))
    found = with_past_waits(Answer(options=(option, other), unfit=()), "puhti", "slurm", ask)
    first, second = found.options
    assert first.past_wait is not None
    assert (first.past_wait.median_s, first.past_wait.jobs) == (720.0, 5)
    assert first.similar_jobs == 5
    assert (second.past_wait, second.similar_jobs) == (None, None)


@pytest.mark.parametrize(
    ("known", "wait", "words"),
    [
        (
            9,
            PastWait(median_s=720.0, most_s=7200.0, jobs=9),
            (
                "9 similar jobs of yours waited 12 min (median) in the last 90 days; 90 % of these "
                "jobs waited at most 2 h"
            ),
        ),
        (
            1,
            None,
            (
                "the start is not known: the scheduler gives no estimate, and its accounting has 1 "
                "similar job of yours in the last 90 days (Teho needs at least 5)"
            ),
        ),
        (None, None, ""),
    ],
)
def test_the_past_wait_in_words(known: int | None, wait: PastWait | None, words: str) -> None:
    option = msgspec.structs.replace(gpu_option(), past_wait=wait, similar_jobs=known)
    assert waiting_words(option) == words
