"""Which cores each task of a node gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_trees import LUMI_CORES, LUMI_NUMA, lumi, lumi_g, puhti, task, with_threads

from teho.launch.binding import RankBinding, bind, physical_cores, share_cores, step_masks
from teho.launch.gpus import Gpus, find_gpus
from teho.schedulers.sites import SITES

GCDS = Gpus("ROCR_VISIBLE_DEVICES", [str(number) for number in range(8)], [None] * 8)
NONE = Gpus("", [], [])
# The table of clusters.md, section 7: by local rank, for 7 cores, for 6, and the first core.
MASKS_OF_7 = (
    "0x00fe000000000000", "0xfe00000000000000", "0x0000000000fe0000", "0x00000000fe000000",
    "0x00000000000000fe", "0x000000000000fe00", "0x000000fe00000000", "0x0000fe0000000000",
)  # fmt: skip
MASKS_OF_6 = (
    "0x007e000000000000", "0x7e00000000000000", "0x00000000007e0000", "0x000000007e000000",
    "0x000000000000007e", "0x0000000000007e00", "0x0000007e00000000", "0x00007e0000000000",
)  # fmt: skip
MAP_CPU = (49, 57, 17, 25, 1, 9, 33, 41)
# What srun gives by itself on a whole node with -c 7: in order, and far from the GPUs.
IN_ORDER = tuple(f"0x{0xFE << 8 * ccd:016x}" for ccd in range(8))


def cores_of(mask: str) -> frozenset[int]:
    return frozenset(bit for bit in range(64) if int(mask, 16) >> bit & 1)


def mask_of(binding: RankBinding) -> str:
    return f"0x{sum(1 << core for core in binding.cores):016x}"


def bound_by_srun(masks: tuple[str, ...], kind: str = "mask_cpu:") -> dict[str, str]:
    return {"SLURM_CPU_BIND_TYPE": kind, "SLURM_CPU_BIND_LIST": ",".join(masks)}


def on_lumi(
    masks: tuple[str, ...], top: str, mine: frozenset[int] | None = None
) -> list[RankBinding]:
    """Bind the eight tasks of a node; they are bound by srun already, or may run on all of it."""
    environment = bound_by_srun(masks) if masks else {"SLURM_CPUS_ON_NODE": "56"}
    found = []
    for rank in range(8):
        own = mine or (cores_of(masks[rank]) if masks else LUMI_CORES)
        found.append(bind("auto", task(rank), GCDS, lumi(), environment, own, top))
    return found


def test_lumis_masks_are_those_of_the_table(tmp_path: Path):
    unbound = on_lumi((), str(tmp_path))
    assert tuple(map(mask_of, unbound)) == MASKS_OF_7
    by_srun = on_lumi(IN_ORDER, str(tmp_path))
    assert tuple(map(mask_of, by_srun)) == MASKS_OF_7
    assert {binding.threads for binding in [*unbound, *by_srun]} == {7}
    assert not any(binding.why_not for binding in [*unbound, *by_srun])


def test_lumis_masks_of_six_cores(tmp_path: Path):
    in_order = tuple(f"0x{0x7E << 8 * ccd:016x}" for ccd in range(8))
    bindings = on_lumi(in_order, str(tmp_path))
    assert tuple(map(mask_of, bindings)) == MASKS_OF_6
    assert {binding.threads for binding in bindings} == {6}


def test_lumis_map_of_single_cores(tmp_path: Path):
    firsts = tuple(f"{8 * ccd + 1}" for ccd in range(8))
    environment = bound_by_srun(firsts, "map_cpu:")
    bindings = [
        bind("auto", task(rank), GCDS, lumi(), environment, {int(firsts[rank])}, str(tmp_path))
        for rank in range(8)
    ]
    assert tuple(binding.cores for binding in bindings) == tuple((core,) for core in MAP_CPU)


@pytest.mark.parametrize("masks", [MASKS_OF_7, MASKS_OF_6])
def test_masks_that_are_right_stay(tmp_path: Path, masks: tuple[str, ...]):
    bindings = on_lumi(masks, str(tmp_path))
    assert tuple(map(mask_of, bindings)) == masks
    assert {binding.why_not for binding in bindings} == {"Slurm has put each task near its GPU"}
    assert all(binding.is_fine for binding in bindings)


def test_hyper_threads_of_lumi_go_with_their_cores(tmp_path: Path):
    top = str(with_threads(tmp_path, 64))
    both = LUMI_CORES | {core + 64 for core in LUMI_CORES}
    # The job may hold the threads of reserved cores: they are that core's too.
    for mine in (both, both | {64, 120}):
        bindings = on_lumi((), top, mine)
        assert bindings[0].cores == (*range(49, 56), *range(113, 120))
        assert bindings[4].cores == (*range(1, 8), *range(65, 72))
        assert {binding.threads for binding in bindings} == {7}


@given(st.sets(st.integers(0, 63), min_size=8), st.integers(1, 8))
def test_never_a_reserved_core(pool: set[int], size: int):
    environment = {"SLURM_CPUS_ON_NODE": str(len(pool))}
    for rank in range(size):
        binding = bind(
            "auto", task(rank, size), GCDS, lumi(), environment, frozenset(pool), "/nonexistent"
        )
        assert binding.why_not or LUMI_CORES.issuperset(binding.cores)


def test_reserved_cores_are_those_of_nodes_with_gpus(tmp_path: Path):
    # LUMI-C keeps none for the system.
    everything = frozenset(range(64))
    environment = {"SLURM_CPUS_ON_NODE": "64"}
    bindings = [
        bind("auto", task(rank), NONE, lumi(), environment, everything, str(tmp_path))
        for rank in range(8)
    ]
    assert [binding.cores for binding in bindings] == [
        tuple(range(8 * rank, 8 * rank + 8)) for rank in range(8)
    ]


def test_a_part_of_lumis_node_is_not_bound(tmp_path: Path):
    few = Gpus("ROCR_VISIBLE_DEVICES", ["0", "1"], [None, None])
    mine = frozenset(range(1, 8)) | frozenset(range(9, 16))
    binding = bind(
        "auto", task(1, 2), few, lumi(), {"SLURM_CPUS_ON_NODE": "14"}, mine, str(tmp_path)
    )
    assert binding.why_not == (
        "2 of the node's 8 GPUs are visible, but the table of GPUs and cores of lumi is valid "
        "only for whole nodes"
    )
    assert binding.cores == tuple(sorted(mine))
    assert (binding.shared, binding.threads) == (True, 7)


def test_elsewhere_the_bus_decides(tmp_path: Path):
    top = str(puhti(tmp_path))
    gpus = find_gpus({}, top)
    forty = frozenset(range(40))
    halves = ["0x00000ffc00", "0x00000003ff", "0xffc0000000", "0x003ff00000"]
    unbound = [
        bind("auto", task(rank, 4), gpus, None, {"SLURM_CPUS_ON_NODE": "40"}, forty, top).cores
        for rank in range(4)
    ]
    ten = [tuple(range(first, first + 10)) for first in range(0, 40, 10)]
    assert unbound == ten
    # srun deals tasks to processors in turn: the second and the third are far from their GPUs.
    halves = ("0x3ff", "0x3ff00000", "0xffc00", "0xffc0000000")
    by_srun = [
        bind("auto", task(rank, 4), gpus, None, bound_by_srun(halves), cores_of(half), top)
        for rank, half in enumerate(halves)
    ]
    assert [binding.cores for binding in by_srun] == ten
    assert [binding.threads for binding in by_srun] == [10] * 4


def test_lumi_without_its_table_goes_by_the_bus(tmp_path: Path):
    top = str(lumi_g(tmp_path))
    gpus = find_gpus({}, top)
    bindings = [
        bind("auto", task(rank), gpus, None, {"SLURM_CPUS_ON_NODE": "56"}, LUMI_CORES, top)
        for rank in range(8)
    ]
    assert [{core // 16 for core in binding.cores} for binding in bindings] == [
        {numa} for numa in LUMI_NUMA
    ]


def test_two_ranks_of_a_gpu_get_neighbouring_cores(tmp_path: Path):
    top = str(puhti(tmp_path))
    gpus = find_gpus({}, top)
    found = [
        bind("auto", task(rank), gpus, None, {}, frozenset(range(40)), top).cores
        for rank in range(8)
    ]
    sides = [{core // 20 for core in cores} for cores in found]
    assert sides == [{0}, {0}, {1}, {1}, {0}, {0}, {1}, {1}]


POOLS = st.sets(st.integers(0, 40), min_size=1)
NEAR = st.lists(st.one_of(st.none(), POOLS.map(frozenset)), min_size=1, max_size=12)


@given(POOLS, NEAR, st.sampled_from([1, 8, 20]))
def test_shares_are_equal_and_separate(
    pool: set[int], near: list[frozenset[int] | None], cores: int
):
    top = TREES[cores]
    shares = share_cores(frozenset(pool), near, top)
    groups = physical_cores(frozenset(pool), top)
    if shares is None:
        assert len(groups) < len(near)
        return
    dealt = [core for share in shares for core in share]
    assert len(dealt) == len({*dealt})
    assert pool.issuperset(dealt)
    # Hyper-threads of a core go together, and each has as many cores as the others.
    assert all({*group} <= {*dealt} or {*group}.isdisjoint(dealt) for group in groups)
    counts = {sum({*group} <= {*share} for group in groups) for share in shares}
    assert counts == {len(groups) // len(near)}


@given(st.integers(1, 6), st.integers(1, 5))
def test_who_has_cores_nearby_gets_them(tasks: int, each: int):
    # Tasks want disjoint cores, in another order than their own.
    near = [frozenset(range(rank * each, rank * each + each)) for rank in reversed(range(tasks))]
    shares = share_cores(frozenset(range(tasks * each)), near, "/nonexistent")
    assert shares == [tuple(sorted(wanted)) for wanted in near]


TREES: dict[int, str] = {}


@pytest.fixture(autouse=True, scope="module")
def _trees(tmp_path_factory: pytest.TempPathFactory) -> None:
    TREES[1] = "/nonexistent"
    for cores in (8, 20):
        TREES[cores] = str(with_threads(tmp_path_factory.mktemp("threads"), cores))


def test_physical_cores(tmp_path: Path):
    assert physical_cores(frozenset({3, 1}), "/nonexistent") == [(1,), (3,)]
    top = str(with_threads(tmp_path, 4))
    assert physical_cores(frozenset({0, 1, 4, 6}), top) == [(0, 4), (1,), (6,)]


FORTY = frozenset(range(40))


@pytest.mark.parametrize(
    ("size", "started_by", "environment", "mine", "why", "shared", "threads"),
    [
        (1, "Slurm", {"SLURM_CPUS_ON_NODE": "40"}, FORTY, "the only task", False, 40),
        # Where nothing keeps a job to its own cores.
        (1, "Slurm", {"SLURM_CPUS_ON_NODE": "10"}, FORTY, "the only task", False, 10),
        (4, "Slurm", {"SLURM_CPUS_ON_NODE": "20"}, FORTY, "the system lets it run on 40", True, 5),
        (4, "Open MPI", {"JOB_ID": "7", "NSLOTS": "8"}, FORTY, "the job has 8 cores", True, 2),
        (1, "", {"JOB_ID": "7", "NSLOTS": "4"}, FORTY, "the only task", False, 4),
        # NSLOTS is another's variable outside of Grid Engine.
        (1, "", {"NSLOTS": "4"}, FORTY, "the only task", False, 40),
        (1, "", {"SLURM_CPUS_ON_NODE": "²"}, FORTY, "the only task", False, 40),
        # mpirun binds to a core, or to a processor that others have too.
        (4, "Open MPI", {"SLURM_CPUS_ON_NODE": "40"}, {3}, "Open MPI has bound each", False, 1),
        (8, "Open MPI", {"SLURM_CPUS_ON_NODE": "40"}, {*range(20)}, "Open MPI has", False, 5),
        (2, "Slurm", {"SLURM_CPUS_ON_NODE": "40", "SLURM_CPU_BIND_TYPE": "sockets"}, {*range(9)},
         "Slurm has bound each", False, 9),
        (50, "Slurm", {"SLURM_CPUS_ON_NODE": "40"}, FORTY, "50 tasks share only 40 cores", True, 1),
        (2, "Slurm", bound_by_srun(("0x3", "0x6")), {0, 1}, "CPU masks of srun overlap", False, 1),
        (3, "Slurm", bound_by_srun(("0x3", "0xc")), {0, 1}, "CPU masks of srun overlap", False, 1),
        (2, "Slurm", bound_by_srun(("0x3", "0x1c")), {0, 1}, "different sizes", False, 2),
        (2, "Slurm", bound_by_srun(("0x3", "0xc")), {0, 1}, "each task has its own", False, 2),
    ],
)  # fmt: skip
def test_what_is_left_as_it_was(
    tmp_path, size, started_by, environment, mine, why, shared, threads
):
    binding = bind(
        "auto", task(0, size, started_by), NONE, None, environment, frozenset(mine), str(tmp_path)
    )
    assert why in binding.why_not
    assert binding.cores == tuple(sorted(mine))
    assert (binding.shared, binding.threads) == (shared, threads)
    # Without a GPU, cores of one's own are as good as others.
    assert binding.is_fine == (size == 1 or not shared)


@pytest.mark.parametrize(
    ("gpus", "why"),
    [
        (NONE, "each task has its own cores, and sees no GPU"),
        (
            Gpus("CUDA_VISIBLE_DEVICES", ["0"], [frozenset({2, 3})], common=False),
            "each task has its own cores, and it is not known which GPU belongs to which task",
        ),
        (
            Gpus("CUDA_VISIBLE_DEVICES", ["0", "1"], [None, None], why_unknown="it is dark"),
            "each task has its own cores, and it is dark",
        ),
    ],
)
def test_why_good_cores_stay(tmp_path: Path, gpus: Gpus, why: str):
    environment = bound_by_srun(("0x3", "0xc"))
    binding = bind("auto", task(0, 2), gpus, None, environment, frozenset({0, 1}), str(tmp_path))
    assert binding.why_not == why
    assert binding.is_fine == (gpus is NONE)


@pytest.mark.parametrize("per_task", [1, 2])
def test_all_tasks_agree_if_each_sees_a_gpu_of_its_own(tmp_path: Path, per_task: int):
    # --gpus-per-task: no task knows which GPUs the others have.
    top = str(puhti(tmp_path))
    found = []
    for rank in range(4 // per_task):
        own = ",".join(str(rank * per_task + number) for number in range(per_task))
        environment = {
            "CUDA_VISIBLE_DEVICES": own, "SLURM_STEP_GPUS": own, "SLURM_GPUS_ON_NODE": "4",
            "SLURM_CPUS_ON_NODE": "40",
        }  # fmt: skip
        gpus = find_gpus(environment, top)
        one = task(rank, 4 // per_task)
        found.append(bind("auto", one, gpus, None, environment, FORTY, top).cores)
    assert sorted(core for cores in found for core in cores) == sorted(FORTY)


@pytest.mark.parametrize("started_by", ["torchrun", "Open MPI", "RANK and WORLD_SIZE"])
def test_a_task_with_the_cores_of_its_parent_is_not_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started_by: str
):
    # As in a container that has 8 of the machine's cores.
    eight = frozenset(range(8))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*eight})
    found = [
        bind("auto", task(rank, 4, started_by), NONE, None, {}, eight, str(tmp_path)).cores
        for rank in range(4)
    ]
    assert found == [(0, 1), (2, 3), (4, 5), (6, 7)]


@pytest.mark.parametrize(
    "kind",
    [{}, {"SLURM_CPU_BIND_TYPE": "none"}, bound_by_srun(("0xff",)), bound_by_srun(("0xff",) * 2)],
)
def test_if_srun_binds_no_task_all_cores_are_shared_out(tmp_path: Path, kind: dict[str, str]):
    # A machine with fewer cores than its Slurm believes, as a twin is.
    environment = {"SLURM_CPUS_ON_NODE": "40", **kind}
    eight = frozenset(range(8))
    found = [
        bind("auto", task(rank, 2), NONE, None, environment, eight, str(tmp_path)).cores
        for rank in range(2)
    ]
    assert found == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_a_parent_that_cannot_be_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(_: int) -> None:
        raise ProcessLookupError(3, "No such process")

    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", refuse)
    mpi = task(0, 4, "MPI (Hydra)")
    binding = bind("auto", mpi, NONE, None, {}, frozenset({0, 1}), str(tmp_path))
    assert "MPI (Hydra) has bound each task" in binding.why_not


def test_grid_engine_counts_the_slots_of_all_nodes(tmp_path: Path):
    both = task(0, 4, "Open MPI")
    both.hosts = ("n1", "n2")
    environment = {"JOB_ID": "7", "NSLOTS": "8"}
    binding = bind("auto", both, NONE, None, environment, FORTY, str(tmp_path))
    assert "the job has 4 cores, but the system lets it run on 40" in binding.why_not


@pytest.mark.parametrize(
    ("size", "cores", "variables", "shared", "threads"),
    [
        (1, range(20), {"CUDA_VISIBLE_DEVICES": "0,1"}, False, 20),
        (2, range(20), {"CUDA_VISIBLE_DEVICES": "0,1"}, False, 10),
        # The node does not bind its jobs: twenty cores belong to the job.
        (2, range(40), {"CUDA_VISIBLE_DEVICES": "0,1"}, True, 10),
        # Two slots were requested too.
        (1, range(20), {"CUDA_VISIBLE_DEVICES": "0,1", "NSLOTS": "2"}, False, 20),
        # Without the variable, the number of the job's GPUs is not known.
        (1, range(20), {}, False, 1),
    ],
)
def test_cores_come_with_the_gpus_of_arc4(tmp_path: Path, size, cores, variables, shared, threads):
    arc4 = next(site for site in SITES if site["name"] == "arc4")
    environment = {"JOB_ID": "7", "NSLOTS": "1", **variables}
    gpus = Gpus("CUDA_VISIBLE_DEVICES", ["0", "1"], [None, None])
    one, mine = task(0, size, "Open MPI" if size > 1 else ""), frozenset(cores)
    binding = bind("auto", one, gpus, arc4, environment, mine, str(tmp_path))
    assert (binding.shared, binding.threads) == (shared, threads)
    of_slots = int(environment["NSLOTS"])
    unknown = bind("auto", one, gpus, None, environment, mine, str(tmp_path))
    assert unknown.threads == max(1, of_slots // size)


def test_none_leaves_all_as_it_was(tmp_path: Path):
    binding = bind("none", task(2), GCDS, lumi(), {}, LUMI_CORES, str(tmp_path))
    assert (binding.why_not, binding.cores) == ("--bind none", tuple(sorted(LUMI_CORES)))
    assert (binding.shared, binding.threads) == (True, 7)


def test_masks_that_do_not_read_are_none():
    assert step_masks({}) == []
    assert step_masks({"SLURM_CPU_BIND_TYPE": "none", "SLURM_CPU_BIND_LIST": "0x1"}) == []
    assert step_masks(bound_by_srun(("0x1", "rubbish"))) == []
    assert step_masks(bound_by_srun(("1", "zwei"), "map_cpu:")) == []
    assert step_masks(bound_by_srun(("1", "0x2"), "map_cpu:")) == [{1}, {2}]
    assert step_masks(bound_by_srun(("0x3", "0xC"))) == [{0, 1}, {2, 3}]
