"""`teho submit --follow` as its user types it, on four Slurms and one Grid Engine.

All jobs run at the same time, each followed by a process of its own; the tests then read
what those told, and hold it against `sacct` and `qacct`. What a job must cost is computed
here from the sites' formulas and from what the scheduler says that the job held.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import grid_engine_twin
import pytest
from grid_engine_twin import PROGRAMS, USER, GridEngineTwin
from slurm_twin import several
from submit_sites import PATIENCE_S, Account, OnGridEngine, OnSlurm, Site, Told

from drawn import cases_that_run
from teho.clusters.catalogue import load_cluster
from teho.units import format_duration

CLUSTERS = ("puhti", "mahti", "lumi", "narval")
EXIT_CODES = {"puhti": 0, "mahti": 7, "lumi": 0, "narval": 7, "arc4": 7}
"""Of each cluster's first job."""


Jobs = dict[str, tuple[Site, "Future[Any]"]]


@pytest.fixture(scope="module")
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(32) as pool:
        yield pool


def _special(site: Site, threads: ThreadPoolExecutor) -> Jobs:
    """Send the jobs that each scheduler runs once."""
    acts: dict[str, Callable[[], object]] = {
        "limit": site.to_its_limit,
        "again": site.again,
        "waits": site.waits,
        "array": site.array,
        "cancelled": site.cancelled,
    }
    return {name: (site, threads.submit(act)) for name, act in acts.items()}


@pytest.fixture(scope="module")
def on_slurm(
    request: pytest.FixtureRequest,
    slurm: None,
    tmp_path_factory: pytest.TempPathFactory,
    threads: ThreadPoolExecutor,
) -> Iterator[Jobs]:
    """Send every job to the Slurms; the first by its cluster, the others by what they show."""
    drawn = {name for _, name in cases_that_run(request, "job")}
    clusters = [load_cluster(name, {}) for name in CLUSTERS if name in {"puhti", *drawn}]
    kinds = {kind.name for one in clusters for kind in one.nodes if kind.gpu}
    live = {name: 2 for name in kinds if "slice" not in name and "." not in name}
    with several(clusters, live, asleep=False) as twins:
        sites = {
            name: OnSlurm(name, tmp_path_factory.mktemp(name), twin.environment, "root")
            for name, twin in twins.items()
        }
        jobs = _special(sites["puhti"], threads)
        jobs["trial"] = (sites["puhti"], threads.submit(sites["puhti"].trial))
        for name, site in sites.items():
            run = threads.submit(site.first_job, "--record", code=EXIT_CODES[name])
            jobs[name] = (site, run)
        yield jobs
        for _, run in jobs.values():
            run.exception()  # nobody asks a scheduler that is gone


@pytest.fixture(scope="module")
def on_grid_engine(threads: ThreadPoolExecutor) -> Iterator[Jobs]:
    """Send the same jobs to ARC4."""
    if reason := grid_engine_twin.why_not():
        pytest.skip(reason)
    with grid_engine_twin.started(load_cluster("arc4", {})) as twin:
        site = _as_user(twin, USER)
        probe = site.run(sys.executable, "-c", "import teho")
        if probe.code:
            pytest.skip(f"{USER}, who submits, cannot run this Python: {probe.said}")
        first = threads.submit(site.first_job, code=EXIT_CODES["arc4"])
        # An ordinary user may not be able to read this Python in a job.
        of_root = _as_user(twin, "root")
        trial = threads.submit(of_root.trial)
        jobs = {"arc4": (site, first), **_special(site, threads), "trial": (of_root, trial)}
        yield jobs
        for _, run in jobs.values():
            run.exception()


def _as_user(twin: GridEngineTwin, user: str) -> Site:
    """Return the twin as a user sees it, without its wrappers, which are root's."""
    path = f"{PROGRAMS}:{os.environ['PATH']}"
    folder = twin.home / f"jobs of {user}"
    return OnGridEngine("arc4", folder, {**twin.environment, "PATH": path}, user)


@pytest.fixture
def job(request: pytest.FixtureRequest) -> tuple[Site, Any]:
    """Return where a job ran, and what was told of it; by the test's parameter."""
    scheduler, name = request.param
    site, run = request.getfixturevalue(scheduler)[name]
    return site, run.result(PATIENCE_S)


def jobs(*names: str) -> pytest.MarkDecorator:
    """Give a test these jobs, one after another."""
    found = [("on_slurm", name) for name in names if name != "arc4"]
    found += [("on_grid_engine", name) for name in names if name not in CLUSTERS]
    return pytest.mark.parametrize(
        "job", found, indirect=True, ids=["-".join(one) for one in found]
    )


DRAWN = pytest.mark.drawn(1, always=("on_slurm-puhti", "on_grid_engine-arc4"))


@DRAWN
@jobs(*CLUSTERS, "arc4")
def test_a_job_runs_and_all_agree_on_its_end(
    job: tuple[Site, Told], request: pytest.FixtureRequest
) -> None:
    site, told = job
    code = EXIT_CODES[request.node.callspec.params["job"][1]]
    (account,) = site.accounts(told.number)
    assert told.code == account.exit_code == code
    lines = told.log.split("\n")
    assert lines.index("begin") < lines.index("end")
    assert "running" in told.states
    assert told.states[-1] == ("failed" if code else "completed")
    word = "failed with exit code 7" if code else "completed"
    time_s = format_duration(account.elapsed_s)
    assert told.end == f"Job {told.number} {word} after {time_s} of 15 min"
    assert account.state in {"", "FAILED" if code else "COMPLETED"}
    assert "Traceback" not in told.said


# facts/clusters.md, section 6, for one job without a local disk of its own.
FORMULAS: dict[str, Callable[[Account], float]] = {
    "puhti": lambda of: of.gpus * 60 + of.cores * 1 + of.memory_gib * 0.1,
    "mahti": lambda of: of.gpus * 100,
    "lumi": lambda of: (
        of.nodes * 4
        if of.partition == "standard-g"
        else max(math.ceil(of.cores / 8), math.ceil(of.memory_gib / 64), of.gpus) * 0.5
    ),
    "narval": lambda of: max(of.gpus * 4.0, of.cores / 3.00, of.memory_gib / 31.1),
}
UNITS = {"puhti": "GPU BU", "mahti": "GPU BU", "lumi": "GPU-hour", "narval": "RGU-hour"}


@DRAWN
@jobs(*CLUSTERS)
def test_the_cost_is_the_sites_formula(
    job: tuple[Site, Told], request: pytest.FixtureRequest
) -> None:
    site, told = job
    name = request.node.callspec.params["job"][1]
    (account,) = site.accounts(told.number)
    assert account.gpus == 1
    said = " ".join(told.said.split())
    found = re.search(
        rf"Cost [\d.]+ {UNITS[name]}s?: .* h = ([\d.]+) {UNITS[name]}s? \(planned: at most", said
    )
    assert found, told.said
    expected = FORMULAS[name](account) * account.elapsed_s / 3600
    assert float(found.group(1)) == pytest.approx(expected, rel=2e-3)


@DRAWN
@jobs(*CLUSTERS)
def test_the_report_of_the_recording_has_the_same_cost(
    job: tuple[Site, Told], request: pytest.FixtureRequest
) -> None:
    site, told = job
    name = request.node.callspec.params["job"][1]
    (account,) = site.accounts(told.number)
    report = json.loads(site.teho("report", told.number, "--format", "json").log)
    facts = {fact["key"]: fact for fact in report["facts"]}
    cost, hours = facts["cost"], facts["elapsed_s"]["value"] / 3600
    if name == "mahti" and account.partition == "gpusmall":
        # The twin's nodes have no GPU to see: it may be a whole one or a slice.
        assert "several bills are possible" in cost["value"]["detail"]
        return
    assert cost["unit"] == UNITS[name], cost
    assert cost["value"] == pytest.approx(FORMULAS[name](account) * hours, rel=2e-3)
    # No figure for what was not used: the utilisation was not recorded.
    unused = facts["cost_unused"]["value"]
    assert unused["reason"] == "unrecorded"
    assert "of 1 GPU" in unused["detail"] or "of 8 GPU" in unused["detail"]


@jobs("arc4")
def test_a_site_that_charges_nothing_says_so(job: tuple[Site, Told]) -> None:
    _, told = job
    assert "free of charge" in told.said
    assert "Cost" not in told.said


@DRAWN
@jobs(*CLUSTERS)
def test_the_recording_knows_its_job(
    job: tuple[Site, Told], request: pytest.FixtureRequest
) -> None:
    site, told = job
    (account,) = site.accounts(told.number)
    assert told.log.count("Full report") == 1
    assert "Full report" not in told.said
    # Other tests of this file record jobs of the same user.
    paths = (site.home / "runs").glob("*/nodes/*.json")
    allocations = [json.loads(path.read_text())["allocation"] for path in paths]
    (allocation,) = [one for one in allocations if one["job_id"] == told.number]
    assert allocation["scheduler"] == "slurm"
    assert allocation["job_id"] == told.number
    assert allocation["cluster"] == request.node.callspec.params["job"][1]
    assert allocation["partition"] == account.partition


@jobs("array")
def test_an_array_ends_with_its_last_task(job: tuple[Site, Told]) -> None:
    site, told = job
    accounts = site.accounts(told.number, 3)
    assert sorted(one.exit_code for one in accounts) == [0, 0, 1]
    assert told.code == 1
    elapsed = format_duration(sum(one.elapsed_s for one in accounts))
    assert told.end == f"Job {told.number} tasks: 2 completed, 1 failed, {elapsed} in all"


@jobs("waits")
def test_a_job_waits_for_another_and_for_its_release(job: tuple[Site, tuple[str, Told]]) -> None:
    site, (first, told) = job
    (before,), (after,) = site.accounts(first), site.accounts(told.number)
    assert told.code == 0
    assert told.log == "second\n"
    assert told.states[-1] == "completed"
    assert before.end <= after.start


@jobs("cancelled")
def test_a_cancelled_job_is_shown_as_such(job: tuple[Site, Told]) -> None:
    site, told = job
    assert told.code != 0
    assert told.log.startswith("up\n")
    (account,) = site.accounts(told.number)
    assert account.state in {"", "CANCELLED by 0"}
    # qacct does not tell who killed it.
    assert ("cancelled" if account.state else "failed by signal 9") in told.end
    assert site.teho("cancel", "long").said.startswith(f"teho: job {told.number} has already ended")


@jobs("limit")
def test_a_job_that_reaches_its_limit_is_shown_as_such(job: tuple[Site, Told]) -> None:
    site, told = job
    assert told.code == 1
    assert told.log.startswith("up\n")
    (account,) = site.accounts(told.number)
    assert account.state in {"", "TIMEOUT"}
    limit = "1 min" if account.state else "5.0 s"
    end = rf"Job {told.number} ended at its time limit after .* of {limit}"
    assert re.fullmatch(end, told.end), told.end


@jobs("trial")
def test_a_trial_says_if_the_long_job_may_go(job: tuple[Site, Told]) -> None:
    site, told = job
    (account,) = site.accounts(told.number)
    assert told.code == account.exit_code == 0, told.said
    assert 10 <= account.elapsed_s < 120, "its pace was known, and it was ended"
    assert told.end.startswith(f"Job {told.number} completed after")
    if account.partition:
        assert account.partition == "gputest"
        assert told.end.endswith("of 5 min")
        # The twin's nodes have no GPU to see, and fewer cores than the job: which of the findings
        # comes first depends on how much the program computed.
        verdict = "Do not submit the long job yet."
        assert "The job has 1 GPU on gpu-n" in " ".join((told.log + told.said).split())
    else:
        assert told.end.endswith("of 15 min"), "the site takes no shorter job"
        verdict = "You can submit the long job: the trial had no error (measured long enough),"
    assert verdict in " ".join((told.log + told.said).split())
    (run,) = json.loads(site.teho("list", "--tag", "trial=yes", "--format", "json").log)
    report = json.loads(site.teho("report", run["id"], "--format", "json").log)
    assert report["verdict"].startswith(verdict)
    assert not {"job_too_short", "time_overasked"} & {one["kind"] for one in report["findings"]}


@jobs("again")
def test_a_job_with_an_early_signal_runs_again(job: tuple[Site, Told]) -> None:
    site, told = job
    assert told.code == 0, told.log + told.said
    lines = [line for line in told.log.splitlines() if line in {"up", "told", "again"}]
    assert lines == ["up", "told", "again"]
    assert told.states[-1] == "completed"
    codes = [one.exit_code for one in site.accounts(told.number, 2)]
    assert codes[-1] == 0
