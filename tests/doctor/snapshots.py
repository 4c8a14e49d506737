"""Snapshots made by hand: a sound one, and functions that change it."""

from __future__ import annotations

from datetime import datetime, timezone

import msgspec

from teho.doctor.snapshot import (
    ClockState,
    Folder,
    FrameworkReport,
    Python,
    ResourceLimits,
    Snapshot,
)
from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.software import Build, Package
from teho.model.survey import Answers, Survey

GIB = 1024**3
NO_ANSWER = Missing(Reason.FAILED, "it did not answer within 2 s")


def gpu(index: int = 0, **more: object) -> Device:
    values = {
        "id": f"GPU-{index}",
        "index": index,
        "name": "NVIDIA A100-SXM4-40GB",
        "vendor": "nvidia",
        "memory_bytes": 40 * GIB,
        "numa_node": index // 2,
        "architecture": "8.0",
    }
    return Device(**{**values, **more})  # type: ignore[arg-type] # of many types


def part(index: int) -> Device:
    return gpu(index, id=f"MIG-{index}", name="NVIDIA A100-SXM4-40GB MIG 1g.5gb", parent_id="GPU-9")


def nvidia(*devices: Device, **more: object) -> Answers:
    values = {
        "source": "nvidia",
        "devices": devices,
        "versions": {"driver by NVML": "550.54.15", "CUDA of the driver": "12.4"},
    }
    if not devices:
        values = {
            "source": "nvidia",
            "state": "absent",
            "why": "no NVIDIA driver library",
            "versions": {},
        }
    return Answers(**{**values, **more})  # type: ignore[arg-type] # of many types


def survey(*gpus: Answers, cores: tuple[int, ...] = tuple(range(12)), **more: object) -> Survey:
    values = {
        "at": datetime(2026, 11, 20, tzinfo=timezone.utc),
        "host": "ng1",
        "scheduler": "slurm",
        "job_id": "4711",
        "cores": cores,
        "core_count_node": 48,
        "memory_node_bytes": 498 * GIB,
        "cpu_model": "AMD EPYC 7413",
        "visible": {"CUDA_VISIBLE_DEVICES": "0"},
        "system": {"container": "none"},
        "node": Answers(source="node"),
        "gpus": gpus or (nvidia(gpu()),),
    }
    return Survey(**{**values, **more})  # type: ignore[arg-type] # of many types


def allocation(**more: object) -> Allocation:
    values = {
        "scheduler": "slurm",
        "job_id": "4711",
        "cores": tuple(range(12)),
        "cores_asked": 12,
        "gpus_held": 1,
        "node_count": 1,
        "memory_limit_bytes": 124 * GIB,
        "memory_limit_source": "scheduler",
    }
    return Allocation(**{**values, **more})  # type: ignore[arg-type] # of many types


def folder(path: str, file_system: str = "xfs", **more: object) -> Folder:
    values = {
        "path": path,
        "file_system": file_system,
        "mounted_on": path,
        "total_bytes": 1000 * GIB,
        "free_bytes": 500 * GIB,
        "total_files": 1_000_000,
        "free_files": 900_000,
        "is_writable": True,
    }
    return Folder(**{**values, **more})  # type: ignore[arg-type] # of many types


def build(framework: str = "pytorch", **more: object) -> Build:
    values = {
        "framework": framework,
        "package": {"pytorch": "torch", "jax": "jaxlib"}.get(framework, framework),
        "version": "2.5.1+cu124",
        "kind": "cuda",
        "toolkit": "12.4",
        "evidence": "version 2.5.1+cu124",
    }
    return Build(**{**values, **more})  # type: ignore[arg-type] # of many types


def report(**more: object) -> FrameworkReport:
    values = {
        "version": "2.5.1+cu124",
        "kind": "cuda",
        "toolkit": "12.4",
        "gpus": 1,
        "architectures": ("sm_70", "sm_80", "sm_90", "compute_90"),
        "collectives": True,
    }
    return FrameworkReport(**{**values, **more})  # type: ignore[arg-type] # of many types


def python(*builds: Build, **framework_reports: FrameworkReport | Missing) -> Python:
    """Return a Python with PyTorch that sees its GPU, or with these frameworks."""
    if not builds:
        builds, framework_reports = (build(),), framework_reports or {"pytorch": report()}
    path = "/home/ada/env/bin/python"
    packages = tuple(Package(name=one.package, version=one.version, origin="pip") for one in builds)
    return Python(
        path=path,
        version="3.12.4",
        packages=packages,
        frameworks=builds,
        framework_reports=framework_reports,
    )


SOUND = Snapshot(
    environment={"HOME": "/home/ada", "OMP_NUM_THREADS": "12"},
    survey=survey(),
    allocation=allocation(),
    python=python(),
    folders={
        "home": folder("/home/ada"),
        "here": folder("/scratch/ada", "lustre"),
        "temporary": folder("/tmp"),
        "shared memory": folder("/dev/shm", "tmpfs"),
    },
    quotas=(),
    limits=ResourceLimits(
        open_files=65536,
        open_files_most=65536,
        address_space_bytes=None,
        locked_memory_bytes=None,
    ),
    cores_of_numa={0: frozenset(range(24)), 1: frozenset(range(24, 48))},
    clock=ClockState(is_synchronised=True, error_s=0.01),
    gpu_files=("/dev/nvidia0",),
)
"""A job on one of Narval's GPU nodes with one GPU, and nothing wrong."""


def changed(snapshot: Snapshot = SOUND, **more: object) -> Snapshot:
    return msgspec.structs.replace(snapshot, **more)


def with_environment(**variables: str) -> Snapshot:
    return changed(environment={**SOUND.environment, **variables})


def with_folder(what: str, found: Folder | Missing) -> Snapshot:
    return changed(folders={**SOUND.folders, what: found})


LAPTOP = changed(
    environment={"HOME": "/home/ada"},
    survey=survey(nvidia(), scheduler=None, job_id=None, visible={}),
    allocation=Allocation(cores=tuple(range(12))),
    python=python(build(kind="cpu", toolkit="", version="2.5.1+cpu")),
    gpu_files=(),
)
"""No job, no GPU, and a build for CPUs, as it should be there."""
