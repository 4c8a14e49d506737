"""The traps of the sites' own documentation: each is a refusal or an advice with a source."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from teho.clusters.catalogue import load_catalogue
from teho.model.plan import Advice, Answer, Refusal
from teho.model.request import Request
from teho.planner.answer import answer

CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})
RESERVED = "--cpu-bind=mask_cpu:0xff000000000000,0xfe00000000000000"
GOOD = "--cpu-bind=mask_cpu:0xfe000000000000,0xfe00000000000000"


def plan(cluster: str, **needs: Any) -> Answer:
    needs.setdefault("time_s", 3600.0)
    return answer(Request(**needs), [CLUSTERS[cluster]], even_if_retired=True)


def refused(found: Answer, label: str) -> dict[str, Refusal]:
    return {one.kind: one for u in found.unfit if u.label == label for one in u.refusals}


def advised(found: Answer, label: str) -> dict[str, Advice]:
    (option,) = [option for option in found.options if option.label == label]
    return {one.kind: one for one in option.advice}


REFUSALS = [
    # cluster, partition, needs, kind, part of the sentence, source
    ("lumi", "standard-g", {"gpus": 8, "cpus_per_gpu": 8}, "too_many_cores_per_node",
     "but jobs can have at most 56 of the 64 cores", "LUG"),
    ("lumi", "small-g", {"gpus": 8, "cpus": 63, "nodes": 1}, "too_many_cores_per_node",
     "63 cores", "LUG"),
    ("lumi", "standard-g", {"gpus": 8, "command": ("srun", RESERVED, "x")},
     "mask_on_reserved_core", "core 48", "LTM"),
    ("lumi", "standard-g", {"gpus": 8, "command": ("srun", "--cpu-bind=map_cpu:1,8,16", "x")},
     "mask_on_reserved_core", "cores 8, 16", "LTM"),
    ("lumi", "small-g", {"gpus": 8, "command": ("srun", GOOD, "x")}, "mask_on_shared_node",
     "partition small-g may have only a part", "LTM"),
    ("mahti", "gpusmall", {"gpus": 3}, "too_many_gpus", "limit of 2 per job", "CSC"),
    ("roihu", "gpumedium", {"gpus": 8}, "too_many_gpus", "limit of 4 per job", "CSC"),
    ("trillium", "compute", {"gpus": 2}, "gpu_count", "only 1 or a multiple of 4", "ALL"),
    ("narval", "GPU nodes", {"gpus": 8, "nodes": 1}, "too_many_gpus_per_node", "4 per node", "ALL"),
]  # fmt: skip


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: f"{row[0]}-{row[3]}")
def test_requests_that_are_refused(row):
    cluster, label, needs, kind, words, source = row
    refusal = refused(plan(cluster, **needs), label)[kind]
    assert words in refusal.sentence
    assert refusal.source.startswith(source)


ADVICE = [
    # cluster, partition, needs that have it, needs that do not, kind, words, source
    ("arc4", "GPU nodes", {"time_s": None}, {}, "time_not_said", "requests 1 h", "ARC"),
    ("puhti", "gpu", {"command": ("python", "x.py", "$LOCAL_SCRATCH/data")},
     {"command": ("python", "x.py", "${LOCAL_SCRATCH}/data"), "local_disk_gib": 100.0},
     "local_disk_not_asked", "--local-disk 100GiB", "CSC"),
    ("puhti", "gpu", {"lines": ("tar -xf d.tar -C $LOCAL_SCRATCH",)},
     {"lines": ("tar -xf d.tar -C $LOCAL_SCRATCH",), "local_disk_gib": 100.0},
     "local_disk_not_asked", "--local-disk 100GiB", "CSC"),
    ("puhti", "gpu", {}, {"account": "project_2001234"}, "account_missing", "project_2001234",
     "CSC"),
    ("roihu", "gpumedium", {}, {"account": "project_2001234"}, "account_missing", "--account",
     "CSC"),
    ("trillium", "compute", {"command": ("cp", "a", "${SLURM_TMPDIR}/a")},
     {"command": ("cp", "a", "$SLURM_TMPDIRS")}, "local_disk_is_memory", "in memory", "ALL"),
    ("lumi", "small-g", {}, {"account": "project_462000001"}, "account_missing",
     "--account project_462000123", "LTM"),
    ("lumi", "small-g", {"cpus_per_gpu": 16, "memory_mib": 60 * 1024}, {"cpus_per_gpu": 7},
     "cores_above_share", "the job costs 0.50 GPU-hours instead of 1", "LTM"),
    ("lumi", "small-g", {"memory_mib": 120 * 1024}, {"memory_mib": 60 * 1024}, "memory_above_share",
     "the job costs 0.50 GPU-hours instead of 1", "LTM"),
    ("mahti", "gpusmall", {"cpus_per_gpu": 40}, {"cpus_per_gpu": 32}, "cores_above_share",
     "stay unused", "CSC"),
    ("puhti", "gpu", {"gpus": 8, "memory_mib": 320 * 1024}, {"gpus": 4, "memory_mib": 320 * 1024},
     "memory_is_per_node", "320 GiB on each of 2 nodes, 640 GiB in all", "`man sbatch`"),
    ("puhti", "gpu", {"gpus": 2}, {"gpus": 2, "launcher": "torchrun"}, "one_process_for_many",
     "one process for 2 GPUs", "CSC"),
    ("arc4", "GPU nodes", {"gpus": 2, "launcher": "launch"}, {"gpus": 1, "launcher": "launch"},
     "one_process_for_many", "stay idle. `--launcher torchrun` starts one", "CSC"),
    ("puhti", "gpu", {"gpus": 8, "launcher": "launch", "command": ("bin/torchrun", "x.py")},
     {"gpus": 8, "launcher": "launch", "command": ("python", "x.py", "torchrun")},
     "processes_twice", "which starts torchrun once per node", "CSC"),
    ("puhti", "gpu", {"gpus": 2, "launcher": "srun", "command": ("accelerate", "launch", "x.py")},
     {"gpus": 1, "launcher": "srun", "command": ("accelerate", "launch", "x.py")},
     "processes_twice", "starts accelerate once per GPU", "CSC"),
    ("puhti", "gpu", {"gpus": 5}, {"gpus": 8}, "gpus_spread",
     "a job of 4 or 8 GPUs uses", "`man sbatch`"),
    ("lumi", "standard-g", {"gpus": 1}, {"gpus": 8}, "whole_nodes_billed", "pays for 8", "LUG"),
    ("lumi", "small-g", {"gpus": 2}, {"gpus": 8}, "energy_is_shared",
     "on whole nodes, the measured energy is only the energy of this job", "LUG"),
    ("roihu", "gpularge", {"gpus": 8}, None, "project_needs", "scalability test", "CSC"),
    ("narval", "GPU nodes", {"time_s": 3599.0}, {}, "short_job", "1 h or more", "ALL"),
    ("narval", "GPU nodes", {}, None, "limit_not_documented", "max nodes", "ALL"),
    ("nibi", "MI300A nodes", {"gpus": 4, "gpu_type": "mi300a"}, None, "cost_not_documented",
     "does not document what a job", "ALL"),
    ("nibi", "MI300A nodes", {"gpus": 4, "gpu_type": "mi300a", "gpu_memory_gib": 90.0},
     {"gpus": 4, "gpu_type": "mi300a"}, "gpu_memory_not_documented", "90 GiB", "ALL"),
    ("trillium", "compute", {}, None, "submit_from", "submit the job from $SCRATCH", "ALL"),
    ("puhti", "gpu", {}, None, "retired", "only an example", "catalogue"),
]  # fmt: skip


@pytest.mark.parametrize("row", ADVICE, ids=lambda row: f"{row[0]}-{row[4]}")
def test_requests_with_a_warning(row):
    cluster, label, needs, without, kind, words, source = row
    advice = advised(plan(cluster, **needs), label)[kind]
    assert words in advice.sentence
    assert advice.source.startswith(source)
    if without is not None:
        assert kind not in advised(plan(cluster, **without), label)


def test_a_cluster_without_bills_gives_whole_nodes_without_cost():
    lumi = CLUSTERS["lumi"]
    partitions = tuple(msgspec.structs.replace(one, billing="") for one in lumi.partitions)
    free = msgspec.structs.replace(lumi, partitions=partitions)
    advice = advised(answer(Request(gpus=1, time_s=3600.0), [free]), "standard-g")
    assert advice["whole_nodes_billed"].sentence.endswith("1 GPU per node, but gets 8 GPUs")


def test_a_good_mask_fits_a_whole_node_and_other_words_are_no_masks():
    assert advised(plan("lumi", gpus=8, command=("srun", GOOD, "x")), "standard-g") is not None
    for words in ("mask_cpu:", "mask_cpu:xyz", "--cpu-bind=cores"):
        assert "small-g" in {o.label for o in plan("lumi", command=("srun", words)).options}


def test_masks_are_read_only_if_the_binding_is_documented():
    found = plan("puhti", command=("srun", RESERVED, "x"))
    assert "gpu" in {option.label for option in found.options}
