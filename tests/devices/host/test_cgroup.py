from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubs.proc_tree import plant
from teho.devices.host.cgroup import MemoryCgroup, _names_job, cpu_quota
from teho.model.missing import Missing, Reason

MIB = 1024**2
NODE = 256 * 1024 * MIB
V1_NONE = "9223372036854771712"
V2_STAT = (
    "anon 1000\nfile 700\nkernel 90\nkernel_stack 10\npagetables 20\nsec_pagetables 1\npercpu 3\n"
    "sock 4\nvmalloc 5\nshmem 300\nslab_reclaimable 40\nslab_unreclaimable 7\nslab 47\n"
)
V2_USED, V2_CACHE = 1000 + 300 + 10 + 20 + 1 + 3 + 4 + 5 + 7, 400
V1_STAT = (
    "cache 7\nrss 8\nshmem 2\nhierarchical_memory_limit {limit}\n"
    "total_cache 700\ntotal_rss 1000\ntotal_shmem 300\n"
)
STEP = "system.slice/slurmstepd.scope/job_123/step_0/user/task_0"


def v2(root: Path, path: str, limits: dict[str, str], mount_root: str = "/") -> Path:
    """Plant a version 2 hierarchy with a cgroup and its limits, by level."""
    mount = "sys/fs/cgroup"
    files = {
        "proc/self/cgroup": f"0::/{path}\n",
        "proc/self/mountinfo": f"30 23 0:26 {mount_root} /{mount} rw - cgroup2 cgroup2 rw\n",
        f"{mount}/memory.stat": "anon 5\nfile 5\nshmem 5\n",
    }
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        level = "/".join(parts[:depth])
        files[f"{mount}/{level}/memory.stat"] = V2_STAT
        files[f"{mount}/{level}/memory.events"] = f"low 0\nmax 9\noom 3\noom_kill {depth}\n"
        files[f"{mount}/{level}/memory.max"] = limits.get(level, "max") + "\n"
    return plant(root, files)


def v1(root: Path, path: str, limits: dict[str, str], hierarchical: str = V1_NONE) -> Path:
    """Plant a version 1 hierarchy, beside an empty version 2 as systemd does."""
    mount = "sys/fs/cgroup/memory"
    files = {
        "proc/self/cgroup": f"9:name=systemd:/x\n4:cpu,cpuacct:/\n3:memory:/{path}\n0::/\n",
        "proc/self/mountinfo": (
            "31 23 0:28 / /sys/fs/cgroup rw shared:1 - tmpfs tmpfs rw\n"
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
            f"35 31 0:32 / /{mount} rw shared:2 - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        ),
    }
    parts = path.split("/")
    for depth in range(len(parts) + 1):
        level = "/".join([mount, *parts[:depth]])
        name = "/".join(parts[:depth])
        files[f"{level}/memory.stat"] = V1_STAT.format(limit=hierarchical)
        files[f"{level}/memory.limit_in_bytes"] = limits.get(name, V1_NONE) + "\n"
        files[f"{level}/memory.oom_control"] = f"under_oom 0\noom_kill {depth}\n"
    return plant(root, files)


def test_version_2_job_is_read_at_the_jobs_level(tmp_path: Path):
    job = "system.slice/slurmstepd.scope/job_123"
    root = v2(tmp_path, STEP, {job: str(64 * MIB), f"{job}/step_0": str(64 * MIB)})
    cgroup = MemoryCgroup(root, "123", NODE)
    assert (cgroup.version, cgroup.own, cgroup.limit_bytes) == (2, True, 64 * MIB)
    assert cgroup._files[0].path == root / "sys/fs/cgroup" / job / "memory.stat"
    readings = cgroup.read()
    assert readings == {"job_memory_bytes": V2_USED, "job_cache_bytes": V2_CACHE, "oom_kills": 3}
    cgroup.close()
    assert cgroup.read() == readings


def test_a_step_with_a_tighter_limit_than_its_job_is_read_itself(tmp_path: Path):
    job = "slurm/job_123"
    root = v2(tmp_path, f"{job}/step_0", {job: str(64 * MIB), f"{job}/step_0": str(8 * MIB)})
    cgroup = MemoryCgroup(root, None, NODE)
    assert cgroup.limit_bytes == 8 * MIB
    assert cgroup._files[0].path.parent.name == "step_0"


def test_a_limit_on_all_jobs_together_does_not_make_them_this_job(tmp_path: Path):
    root = v2(tmp_path, STEP, {"system.slice": str(NODE // 2)})
    cgroup = MemoryCgroup(root, "123", NODE)
    assert cgroup.limit_bytes == NODE // 2
    assert cgroup._files[0].path.parent.name == "job_123"


def test_version_2_outside_of_a_job_is_the_machines(tmp_path: Path):
    root = v2(tmp_path, "user.slice/user-1000.slice/session-3.scope", {})
    cgroup = MemoryCgroup(root, None, NODE)
    assert (cgroup.own, cgroup.limit_bytes) == (False, None)
    readings = cgroup.read()
    assert "job_memory_bytes" not in readings
    assert readings["oom_kills"].reason is readings["job_cache_bytes"].reason is Reason.ABSENT


def test_version_2_without_the_controller_handed_down_is_read_above(tmp_path: Path):
    root = v2(tmp_path, "slurm/job_5/step_0", {})
    (root / "sys/fs/cgroup/slurm/job_5/step_0/memory.stat").unlink()
    assert MemoryCgroup(root, "5", NODE)._files[0].path.parent.name == "job_5"


@pytest.mark.parametrize(("limit", "own"), [(NODE - 1, True), (NODE, False), (NODE + 1, False)])
def test_a_limit_makes_a_cgroup_ones_own_only_below_the_nodes_memory(tmp_path, limit, own):
    root = v2(tmp_path, "docker/abc", {"docker/abc": str(limit)})
    cgroup = MemoryCgroup(root, None, NODE)
    assert (cgroup.own, cgroup.limit_bytes) == (own, limit)


def test_version_1_job(tmp_path: Path):
    path = "slurm/uid_1000/job_123/step_0/task_0"
    root = v1(tmp_path, path, {"slurm/uid_1000/job_123": str(64 * MIB)}, str(64 * MIB))
    cgroup = MemoryCgroup(root, "123", NODE)
    assert (cgroup.version, cgroup.own, cgroup.limit_bytes) == (1, True, 64 * MIB)
    # Kills are counted in the victim's own cgroup, the fifth level, use at the job's.
    assert cgroup.read() == {"job_memory_bytes": 1300, "job_cache_bytes": 400, "oom_kills": 5}


def test_version_1_outside_of_a_job_is_the_machines(tmp_path: Path):
    cgroup = MemoryCgroup(v1(tmp_path, "some_service/e97cb570", {}), None, NODE)
    assert (cgroup.version, cgroup.own, cgroup.limit_bytes) == (1, False, None)


def test_version_1_limit_above_what_is_mounted_is_known(tmp_path: Path):
    root = v1(tmp_path, "", {}, hierarchical=str(32 * MIB))
    assert MemoryCgroup(root, None, NODE).limit_bytes == 32 * MIB


def test_version_1_of_an_old_kernel(tmp_path: Path):
    root = v1(tmp_path, "sge/123.1", {})
    (root / "sys/fs/cgroup/memory/sge/123.1/memory.stat").write_text("cache 7\nrss 8\n")
    (root / "sys/fs/cgroup/memory/sge/123.1/memory.oom_control").write_text("under_oom 0\n")
    readings = MemoryCgroup(root, "123", NODE).read()
    assert (readings["job_memory_bytes"], readings["job_cache_bytes"]) == (8, 7)
    assert readings["oom_kills"].reason is Reason.UNSUPPORTED


def test_a_path_that_is_not_mounted_falls_back_to_the_mount(tmp_path: Path):
    # As in a container: the path is the host's, the mount shows its own part alone.
    root = v2(tmp_path, "", {})
    plant(
        root,
        {
            "proc/self/cgroup": "0::/slurm/job_9/step_0\n",
            "sys/fs/cgroup/memory.stat": V2_STAT,
            "sys/fs/cgroup/memory.max": str(16 * MIB),
            "sys/fs/cgroup/memory.events": "oom_kill 1\n",
        },
    )
    cgroup = MemoryCgroup(root, "9", NODE)
    assert (cgroup.own, cgroup.limit_bytes) == (True, 16 * MIB)
    assert cgroup.read()["job_memory_bytes"] == V2_USED


def test_the_name_of_a_path_that_is_not_mounted_proves_nothing(tmp_path: Path):
    root = v2(tmp_path, "", {})
    plant(root, {"proc/self/cgroup": "0::/slurm/job_9\n", "sys/fs/cgroup/memory.max": "max"})
    assert not MemoryCgroup(root, "9", NODE).own


def test_a_path_out_of_the_cgroup_namespace_falls_back_to_the_mount(tmp_path: Path):
    root = v2(tmp_path, "", {})
    plant(root, {"proc/self/cgroup": "0::/../../job_9\n", "sys/fs/job_9/memory.stat": V2_STAT})
    assert not MemoryCgroup(root, "9", NODE).own


def test_a_mount_of_only_the_jobs_part_is_the_jobs(tmp_path: Path):
    root = v2(tmp_path, "", {}, mount_root="/slurm/job_9/step_0")
    plant(root, {"proc/self/cgroup": "0::/slurm/job_9/step_0\n"})
    assert MemoryCgroup(root, "9", NODE).own


def test_blanks_in_a_mount_point(tmp_path: Path):
    root = plant(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job_1\n",
            "proc/self/mountinfo": "30 23 0:26 / /sys/c\\040g rw - cgroup2 cgroup2 rw\n",
            "sys/c g/job_1/memory.stat": V2_STAT,
        },
    )
    cgroup = MemoryCgroup(root, None, None)
    assert cgroup.read()["job_cache_bytes"] == V2_CACHE
    assert cgroup.read()["oom_kills"].reason is Reason.ABSENT


def test_nothing_there_is_absent(tmp_path: Path):
    cgroup = MemoryCgroup(tmp_path, None, NODE)
    assert (cgroup.version, cgroup.limit_bytes, cgroup.own) == (None, None, False)
    assert cgroup.read()["oom_kills"].reason is Reason.ABSENT


def test_a_cgroup_that_goes_away_is_missing(tmp_path: Path):
    root = v2(tmp_path, "job_1", {})
    cgroup = MemoryCgroup(root, None, NODE)
    (root / "sys/fs/cgroup/job_1/memory.stat").unlink()
    assert cgroup.read()["job_memory_bytes"].reason is Reason.ABSENT
    assert cgroup.read()["oom_kills"] == 1


def test_a_stat_without_its_lines_is_reported(tmp_path: Path):
    root = v2(tmp_path, "job_1", {})
    (root / "sys/fs/cgroup/job_1/memory.stat").write_text("file 3\nshmem 1\nodd line here\n")
    missing = MemoryCgroup(root, None, NODE).read()["job_memory_bytes"]
    assert missing == Missing(Reason.UNSUPPORTED, "memory.stat has no line anon")


@pytest.mark.parametrize(
    ("path", "job_id", "named"),
    [
        ("/slurm/uid_1000/job_123/step_0", "123", True),
        ("/slurm/uid_1000/job_123/step_0", None, True),
        ("/slurm/uid_1000/job_123", "12", False),
        ("/UGE/123.1", "123", True),
        ("/UGE/123.1", None, False),
        ("/lsf/cluster/job.123.456", "123", True),
        ("/user.slice/user-1.slice/session-1.scope", "1", False),
        ("/system.slice/jobs.service", None, False),
    ],
)
def test_names_of_jobs(tmp_path, path, job_id, named):
    from pathlib import PurePosixPath

    assert _names_job(PurePosixPath(path), job_id) is named


PARTS_OF_MOUNTS = st.sampled_from(
    ["30", "23 0:26", "/", "/sys/fs/cgroup", "\\040", "rw", "-", "- cgroup2 cgroup2", "cgroup",
     "memory", "\n", ""]
)  # fmt: skip
A_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


@given(
    cgroup=st.one_of(st.text(max_size=80), st.sampled_from(["", "job_1", "../x", "a\n3:memory:/"])),
    mounts=st.one_of(
        st.text(max_size=200),
        st.lists(PARTS_OF_MOUNTS, max_size=20).map(" ".join),
        st.just(A_MOUNT),
    ),
    stat=st.one_of(st.just(V2_STAT), st.text(max_size=80), st.just("anon -1\nfile x\nshmem 3 4")),
)
def test_any_text_is_figures_or_a_reason(tmp_path_factory, cgroup, mounts, stat):
    root = tmp_path_factory.mktemp("root")
    plant(root, {"proc/self/cgroup": "", "proc/self/mountinfo": "", "sys/fs/cgroup/memory.max": ""})
    (root / "proc/self/cgroup").write_bytes(b"0::/" + cgroup.encode("utf-8", "replace"))
    (root / "proc/self/mountinfo").write_bytes(mounts.encode("utf-8", "replace"))
    (root / "sys/fs/cgroup/memory.stat").write_bytes(stat.encode("utf-8", "replace"))
    found = MemoryCgroup(root, None, None)
    readings = found.read()
    assert set(readings) == set(found.metrics)
    assert ("job_memory_bytes" in readings) == found.own
    for reading in readings.values():
        if isinstance(reading, Missing):
            assert reading.detail
        else:
            assert isinstance(reading, int)
            assert reading >= 0
    # There is no limit, so only the name of a job makes a cgroup the job's.
    assert found.limit_bytes is None
    assert not found.own or "job" in cgroup or "job" in mounts
    if found.version is None:
        assert not found.own
    assert found.version == 2 or cgroup.startswith("a\n") or mounts != A_MOUNT


@pytest.mark.parametrize(
    ("outer", "inner", "cpus"),
    [
        ("max", "150000", 1.5),
        ("400000", "max", 4.0),
        ("100000", "800000", 1.0),
        ("max", "max", None),
    ],
)
def test_the_tightest_cpu_quota_counts(tmp_path: Path, outer: str, inner: str, cpus: float | None):
    v2(tmp_path, "box/part", {})
    plant(
        tmp_path,
        {
            "sys/fs/cgroup/box/cpu.max": f"{outer} 100000\n",
            "sys/fs/cgroup/box/part/cpu.max": f"{inner} 100000\n",
        },
    )
    assert cpu_quota(tmp_path) == cpus


@pytest.mark.parametrize(("quota", "cpus"), [("250000", 2.5), ("-1", None)])
def test_a_cpu_quota_of_version_1(tmp_path: Path, quota: str, cpus: float | None):
    v1(tmp_path, "box", {})
    files = {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": "100000"}
    plant(tmp_path, {f"sys/fs/cgroup/cpu/{name}": f"{text}\n" for name, text in files.items()})
    assert cpu_quota(tmp_path) == cpus
    assert cpu_quota(tmp_path / "nothing") is None


def test_on_this_machine():
    cgroup = MemoryCgroup(Path("/"), None, None)
    readings = cgroup.read()
    assert set(readings) == set(cgroup.metrics)
    cgroup.close()
    cgroup.close()
