"""Discovering a twin gives the figures of the catalogue back, of which the twin was made."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import date
from pathlib import Path

import msgspec
import pytest
from grid_engine_twin import started
from grid_engine_twin import why_not as why_no_grid_engine
from slurm_twin import SlurmTwin

from teho.clusters.catalogue import load_cluster, read_cluster
from teho.clusters.check import mistakes_in
from teho.clusters.differences import differences
from teho.model.cluster import Cluster
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.command import run
from teho.schedulers.grid_engine.inventory import grid_engine_cluster
from teho.schedulers.slurm.inventory import slurm_cluster

pytestmark = pytest.mark.xdist_group("slurm")
TODAY = date(2026, 11, 20)
Teho = Callable[..., subprocess.CompletedProcess[str]]

CLUSTERS = ("lumi", "narval", "puhti")
FACTS = (
    "max_time", "max_nodes", "min_nodes", "exclusive", "max_gpus", "max_gpus_per_node",
    "max_cores", "max_jobs", "max_running_jobs",
)  # fmt: skip


@pytest.fixture(scope="module")
def twins(slurm: None) -> Iterator[dict[str, SlurmTwin]]:
    """Start all at once: most of their start is waiting."""

    def start(name: str) -> SlurmTwin:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twin-")))
        return stack.enter_context(SlurmTwin(load_cluster(name, {}), folder, live={}))

    with ExitStack() as stack:
        # Daemons end with the thread that started them: the threads outlive the twins.
        threads = stack.enter_context(ThreadPoolExecutor(len(CLUSTERS)))
        yield dict(zip(CLUSTERS, threads.map(start, CLUSTERS), strict=True))


@pytest.fixture(params=CLUSTERS)
def twin(twins: dict[str, SlurmTwin], request: pytest.FixtureRequest) -> SlurmTwin:
    return twins[request.param]


@pytest.fixture
def there(twin: SlurmTwin, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The twin as discovered."""
    for name, value in twin.environment.items():
        monkeypatch.setenv(name, value)
    return slurm_cluster(run, user="root", host="login1", today=TODAY, name=twin.cluster.name)


def test_the_catalogue_comes_back(twin: SlurmTwin, there: Cluster) -> None:
    assert differences(twin.cluster, there) == ()
    for kind in twin.cluster.nodes:
        if kind.gpu and kind.gpu.count and kind.count:
            (same,) = [one for one in there.nodes if one.gpu and one.gpu.type == kind.gpu.type]
            assert (same.count, same.gpu.count) == (kind.count, kind.gpu.count)
            assert same.cores == (kind.usable_cores or kind.cores)
            assert same.memory == kind.memory
            assert same.gpu.vendor == kind.gpu.vendor
    for part in twin.cluster.partitions:
        if part.name:
            (live,) = [one for one in there.partitions if one.name == part.name]
            for fact in FACTS:
                assert getattr(live, fact) == getattr(part, fact), (part.name, fact)


def test_an_outdated_catalogue_is_reported(twin: SlurmTwin, there: Cluster) -> None:
    change = msgspec.structs.replace
    parts = tuple(change(part, max_time="1h") for part in twin.cluster.partitions)
    kinds = tuple(change(kind, cores=1, usable_cores=None) for kind in twin.cluster.nodes)
    found = differences(change(twin.cluster, partitions=parts, nodes=kinds), there)
    assert {one.fact for one in found} == {"max_time", "usable_cores"}
    assert len([one for one in found if one.fact == "usable_cores"]) == len(kinds)


def test_the_file_is_sound_and_can_be_planned_on(
    twin: SlurmTwin,
    there: Cluster,
    teho: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
) -> None:
    path = tmp_path / f"{twin.cluster.name}.toml"
    result = teho("clusters", "discover", "--output", path, env=twin.environment)
    assert result.returncode == 0, result.stderr
    assert "everything that Slurm" in result.stdout
    assert mistakes_in(path) == []
    cluster = read_cluster(path)
    assert cluster.nodes == there.nodes
    assert cluster.partitions == there.partitions
    assert cluster.hosts == (os.uname().nodename,)
    options = answer(Request(gpus=1), [cluster]).options
    assert options
    assert {option.cluster for option in options} == {cluster.name}


def test_the_grid_engine_twin_of_arc4(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = why_no_grid_engine()
    if reason:
        pytest.skip(reason)
    arc4 = load_cluster("arc4", {})
    with started(arc4) as twin:
        for name, value in twin.environment.items():
            monkeypatch.setenv(name, value)
        there = grid_engine_cluster(run, environment={}, host="login1", today=TODAY, name="arc4")
    gpus = {kind.gpu.type: kind.gpu.count for kind in there.nodes if kind.gpu}
    assert gpus == {"v100": 4}
    assert {part.max_time for part in there.partitions} == {"2d"}
    assert there.dialect.gpus == arc4.dialect.gpus
    # Each queue tells its own environments.
    assert all(
        "smp" in {one.name for one in part.parallel_environments} for part in there.partitions
    )
    assert {quota.name for quota in there.quotas} == set()
    assert there.dialect.memory == arc4.dialect.memory
    # All kinds of nodes are one machine there, so that there is one of each.
    assert {one.fact for one in differences(arc4, there)} <= {"count", "max_nodes", "kind"}
