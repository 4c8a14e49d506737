"""Each check finds its problem, passes a sound machine, and abstains without information."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from snapshots import (
    GIB,
    LAPTOP,
    NO_ANSWER,
    SOUND,
    allocation,
    build,
    changed,
    folder,
    gpu,
    nvidia,
    part,
    python,
    report,
    survey,
    with_environment,
    with_folder,
)

from teho.clusters.catalogue import load_cluster
from teho.doctor.checks import CHECKS
from teho.doctor.examine import chosen, examine, exit_code
from teho.doctor.snapshot import (
    ClockState,
    Conda,
    CondaFile,
    DataSample,
    DiskQuota,
    Proxy,
    Python,
    ResourceLimits,
    Snapshot,
)
from teho.errors import InputError
from teho.model.cluster import Cluster
from teho.model.device import Device
from teho.model.doctor import CheckResult
from teho.model.finding import Severity
from teho.model.software import Package
from teho.model.survey import Answers

CRITICAL, WARNING, REMARK, _ = Severity
NO_PYTHON = changed(python=NO_ANSWER)
NARVAL, NIBI, PUHTI, ARC4, LUMI, GRAHAM = (
    load_cluster(name, {}) for name in ("narval", "nibi", "puhti", "arc4", "lumi", "graham")
)
HUNG = nvidia(state="failed", why="the NVIDIA driver did not answer within 15 s")
LIMITS = {
    "open_files": 65536,
    "open_files_most": 65536,
    "address_space_bytes": None,
    "locked_memory_bytes": None,
}
FAR = (gpu(numa_node=1),)
GRID_ENGINE = allocation(scheduler="grid_engine", gpus_held=None)


def limited(**more: int | None) -> Snapshot:
    return changed(limits=ResourceLimits(**{**LIMITS, **more}))


def data(
    size: int, count: int = 5000, file_system: str = "lustre", path: str = "/scratch/images"
) -> Snapshot:
    place = folder(path, file_system)
    return changed(
        data=DataSample(folder=place, listed=count, is_whole=False, sizes_bytes=(size,) * 9)
    )


def of_several_nodes(locked_memory_bytes: int) -> Snapshot:
    given = allocation(node_count=2)
    return changed(
        limited(locked_memory_bytes=locked_memory_bytes), allocation=given, has_fabric=True
    )


def with_cores(count: int, **variables: str) -> Snapshot:
    return changed(
        with_environment(**variables),
        survey=survey(cores=tuple(range(count))),
        allocation=allocation(cores_asked=count),
    )


def shared(free_bytes: int) -> Snapshot:
    return with_folder("shared memory", folder("/dev/shm", "tmpfs", free_bytes=free_bytes))


def current(**more: object) -> Snapshot:
    return with_folder("here", folder("/scratch/ada", **more))


def quota(used: int, limit: int) -> DiskQuota:
    return DiskQuota(
        file_system="/home", used_bytes=used * GIB, limit_bytes=limit * GIB,
        used_files=10, limit_files=1000,
    )  # fmt: skip


def conda(*channels: str, path: str = "/home/ada/.condarc", **more: object) -> Snapshot:
    """Return one whose conda has one configuration file."""
    file = CondaFile(path=path, channels=channels, **more)  # type: ignore[arg-type] # of many types
    return changed(conda=Conda(command="/opt/conda/bin/conda", files=(file,)))


def twice() -> Python:
    """Return a Python that has PyTorch from pip and, in another version, from conda."""
    found = python()
    other = Package(name="pytorch", version="2.4.1", build="cuda120_py312_2", origin="conda")
    return msgspec.structs.replace(found, packages=(*found.packages, other))


def documented(machine: str) -> Snapshot:
    """Return one whose PyTorch says nothing of its kernels, and is of a release that is known."""
    release = build(version="2.9.0", toolkit="13.0", evidence="")
    found = python(release, pytorch=report(architectures=()))
    return changed(python=msgspec.structs.replace(found, machine=machine))


def seeing(**more: object) -> Snapshot:
    return changed(python=python(build(), pytorch=report(**more)))


def gpus(*devices: object, **more: object) -> Snapshot:
    held = allocation(gpus_held=len(devices))
    return changed(survey=survey(nvidia(*devices)), allocation=held, **more)  # type: ignore[arg-type]


def whole_node(used: Device, *others: Device) -> Snapshot:
    """Return a job with the node's third GPU, and what its programs use of all."""
    return changed(survey=survey(nvidia(used, others=others), visible={"SLURM_JOB_GPUS": "2"}))


def at_login(cluster: Cluster, toolkit: str, version: str) -> Snapshot:
    release = build(toolkit=toolkit, version=version, evidence="")
    return changed(LAPTOP, cluster=cluster, python=python(release))


CPU_BUILD = build(
    kind="cpu", toolkit="", version="2.4.1", evidence="build cpu_mkl_py313hbc6f0e9_102"
)
LOGIN = changed(LAPTOP, cluster=NARVAL, python=python(CPU_BUILD))
OLD_SITE = changed(LAPTOP, cluster=ARC4, python=python(build(toolkit="13.0", version="2.9.0")))
NO_FRAMEWORK = Python(path="/usr/bin/python3", version="3.9.2")
INTEL = build(kind="xpu", toolkit="", version="2.9.1+xpu", evidence="version 2.9.1+xpu")
MIB = 1024**2
SMALL_LIMIT = {"total_bytes": 64 * 1024**2, "free_bytes": 60 * 1024**2}

FOUND: list[tuple[str, Snapshot, Severity, bool, str]] = [
    # id, snapshot, severity, whether the job is doomed, a part of the sentence
    ("gpus-allocated", changed(survey=survey(nvidia())), CRITICAL, True, "none can be used"),
    ("gpus-allocated", changed(survey=survey(HUNG)), CRITICAL, True, "did not answer within 15 s"),
    ("gpus-allocated", changed(allocation=allocation(gpus_held=2)), WARNING, False,
     "2 GPUs on this node, but a program started here sees only 1"),
    ("gpus-allocated", changed(survey=survey(nvidia(gpu(), gpu(1)))), WARNING, False,
     "other users"),
    ("gpus-allocated", whole_node(gpu(0), gpu(1), gpu(2)), WARNING, False,
     "gave this job GPU 2 of the node, but a program started here uses GPU 0"),
    ("framework-sees-gpus", seeing(gpus=0, why="CUDA unknown error"), CRITICAL, True,
     "torch sees 0 GPUs, but the driver shows 1: CUDA unknown error"),
    ("framework-sees-gpus", gpus(gpu(), gpu(1)), WARNING, False,
     "torch sees 1 GPU, but the driver shows 2"),
    ("framework-sees-gpus", seeing(broken="ImportError: libcudnn.so.9: no such file"), CRITICAL,
     True, "torch cannot be imported: ImportError: libcudnn.so.9"),
    ("framework-sees-gpus",
     changed(python=python(build(), build("jax"), pytorch=report(gpus=0), jax=report())),
     CRITICAL, False, "torch sees 0"),
    ("framework-sees-gpus",
     changed(python=python(CPU_BUILD, build("jax"), jax=report(gpus=0))), CRITICAL, True,
     "jaxlib sees 0 GPUs"),
    ("cpu-only-build", changed(python=python(CPU_BUILD)), CRITICAL, True,
     "torch 2.4.1 is a build for CPUs only, so programs will not use the GPUs here"),
    ("cpu-only-build", changed(python=python(build(), pytorch=report(kind="cpu", toolkit=""))),
     CRITICAL, True, "build for CPUs only"),
    ("cpu-only-build", LOGIN, CRITICAL, False, "the GPUs on the compute nodes"),
    ("cpu-only-build", changed(python=python(CPU_BUILD, build("jax"))), WARNING, False,
     "torch 2.4.1 is a build for CPUs only"),
    ("driver-too-old",
     changed(survey=survey(nvidia(gpu(), versions={"driver by NVML": "450.80.02"}))),
     CRITICAL, True, "CUDA 12.4 needs driver 525.60.13 or newer, but this driver is 450.80.02"),
    ("driver-too-old", OLD_SITE, CRITICAL, False,
     "The driver on ARC4's compute nodes is too old for pytorch: CUDA 13.0 needs driver 580"),
    ("packages", changed(python=twice()), WARNING, False, "PyTorch is installed 2 times"),
    ("packages",
     changed(survey=survey(
         Answers(source="amd", devices=(gpu(vendor="amd", architecture="gfx90a"),))
     )),
     CRITICAL, False, "PyTorch is built for CUDA, but the GPU"),
    ("packages", changed(python=python(INTEL, pytorch=report(kind="xpu", gpus=0))), CRITICAL, False,
     "PyTorch is built for Intel's GPUs, but the GPU"),
    ("packages", changed(LAPTOP, cluster=LUMI, python=python(build())), CRITICAL, False,
     "PyTorch is built for CUDA, but the GPU, MI250X"),
    ("framework-sees-gpus", changed(python=python(INTEL, pytorch=report(kind="xpu", gpus=0))),
     CRITICAL, True, "torch sees 0 GPUs"),
    ("compute-capability", gpus(gpu(architecture="6.0")), CRITICAL, True,
     "has no code for NVIDIA A100-SXM4-40GB (compute capability 6.0)"),
    ("compute-capability", seeing(architectures=("sm_86", "sm_90")), CRITICAL, True, "no code for"),
    ("compute-capability", at_login(GRAHAM, "13.0", "2.12.0"), WARNING, False,
     "no code for Graham's P100 12 GB, V100 16 GB and V100 32 GB, NVLink"),
    ("compute-capability", at_login(ARC4, "13.0", "2.12.0"), CRITICAL, False, "for ARC4's"),
    ("collectives",
     gpus(gpu(), gpu(1), python=python(build(), pytorch=report(gpus=2, collectives=False))),
     WARNING, False, "pytorch has no NCCL"),
    ("collectives",
     gpus(gpu(), gpu(1), python=python(build(), pytorch=report(kind="rocm", collectives=False))),
     WARNING, False, "pytorch has no RCCL"),
    ("mig", gpus(part(0), part(1)), WARNING, False, "2 MIG instances are visible"),
    ("container",
     changed(survey=survey(nvidia(), system={"container": "Apptainer"})), CRITICAL, True,
     "this Apptainer container cannot use them"),
    ("affinity", changed(survey=survey(cores=(0,))), WARNING, False, "1 of the 12 cores"),
    ("affinity", changed(survey=survey(cores=tuple(range(48)))), REMARK, False,
     "given 12 cores, but its programs may run on 48"),
    ("binding-numa", gpus(*FAR), WARNING, False, "GPU 0 is on NUMA node 1"),
    ("threads", with_environment(OMP_NUM_THREADS="48"), WARNING, False, "48 threads on 12 cores"),
    ("threads", with_environment(OMP_NUM_THREADS="16"), WARNING, False, "16 threads on 12 cores"),
    ("threads", with_cores(8, OMP_NUM_THREADS="1"), REMARK, False, "the program has 8 cores"),
    ("threads", with_environment(MKL_NUM_THREADS="all"), WARNING, False, "not a number of threads"),
    ("threads", with_environment(OMP_NUM_THREADS="1"), REMARK, False, "will use only one core"),
    ("threads",
     changed(environment={}, survey=survey(cores=tuple(range(48)))), WARNING, False,
     "Programs see 48 cores, although the job was given only 12 cores"),
    ("threads",
     changed(environment={}, survey=survey(cores=tuple(range(48))),
             allocation=allocation(cores_asked=48), local_size=4), WARNING, False,
     "Programs see 48 cores, although each of the 4 tasks has only 12 cores"),
    ("openmp-hints", with_environment(GOMP_CPU_AFFINITY="0-9"), WARNING, False,
     "GOMP_CPU_AFFINITY is set"),
    ("openmp-hints", with_environment(GOMP_CPU_AFFINITY="0-9", KMP_AFFINITY="compact"), WARNING,
     False, "GOMP_CPU_AFFINITY and KMP_AFFINITY are set"),
    ("share", changed(cluster=NARVAL, allocation=allocation(cores_asked=24)), WARNING, False,
     "24 instead of 12 cores"),
    ("share", changed(cluster=NARVAL, allocation=allocation(memory_limit_bytes=249 * GIB)), WARNING,
     False, "249 instead of 124 GiB"),
    ("share", changed(cluster=NARVAL, allocation=allocation(cores_asked=2)), REMARK, False,
     "fewer cores for each GPU than the cluster intends: 2 instead of 12"),
    ("share", changed(cluster=NARVAL, allocation=allocation(cores_asked=5)), REMARK, False, "5 in"),
    ("share", changed(cluster=NARVAL, allocation=allocation(cores_asked=13)), WARNING, False, "13"),
    ("active-environment", with_environment(CONDA_PREFIX="/opt/conda/envs/pt"), WARNING, False,
     "CONDA_PREFIX says that pt is active, but `python` is /home/ada/env/bin/python"),
    ("active-environment", with_environment(VIRTUAL_ENV="/home/ada/other"), WARNING, False,
     "VIRTUAL_ENV says that other is active"),
    ("active-environment",
     changed(python=NO_FRAMEWORK,
             folders={"home": folder("/home/ada", has_conda_init=True)}),
     WARNING, False, "Batch shells do not read your `.bashrc`"),
    ("conda-channels", conda("defaults", "conda-forge"), WARNING, False,
     "/home/ada/.condarc lists `defaults` first"),
    ("conda-channels", conda("pytorch", "https://mirror.example/pkgs/main", "conda-forge"), WARNING,
     False, "prefers the packages of `defaults`"),
    ("conda-channels", conda("defaults", "pytorch"), REMARK, False, "does not use `conda-forge`"),
    ("conda-channels",
     changed(conda("conda-forge"), environment={"CONDA_CHANNELS": "defaults, conda-forge"}),
     WARNING, False, "CONDA_CHANNELS lists `defaults` first"),
    ("conda-channels",
     changed(conda=Conda(command="", files=(
         CondaFile(path="/home/ada/.condarc", channels=("defaults",)),
         CondaFile(path="/etc/conda/condarc", channels=("conda-forge",))))), WARNING, False,
     "/home/ada/.condarc lists `defaults` first"),
    ("limits", limited(open_files=1024), REMARK, False, "open only 1024 files"),
    ("limits", limited(open_files=256, open_files_most=256), WARNING, False, "open only 256 files"),
    ("limits", limited(address_space_bytes=4 * GIB), WARNING, False, "address space is limited to"),
    ("limits", of_several_nodes(64 * MIB - 1), WARNING, False,
     "NCCL cannot use the fast network (InfiniBand)"),
    ("shared-memory", with_folder("shared memory", folder("/dev/shm", "tmpfs", **SMALL_LIMIT)),
     WARNING, False, "60.0 MiB free of 64.0 MiB"),
    ("shared-memory", shared(GIB - 1), WARNING, False, "a bus error"),
    ("disk-space", current(free_bytes=16 * MIB - 1), CRITICAL, True, "The current folder is full"),
    ("disk-space", current(free_bytes=16 * MIB), WARNING, False, "is nearly full"),
    ("disk-space", current(free_bytes=GIB - 1), WARNING, False, "is nearly full"),
    ("disk-space", current(free_files=99), CRITICAL, True, "room for only 99 new files"),
    ("disk-space", with_folder("temporary", folder("/tmp", is_writable=False)), CRITICAL, False,
     "/tmp cannot be written to"),
    ("quota", changed(quotas=(quota(45, 50),)), WARNING, False, "90 % of the allowed space"),
    ("quota", changed(quotas=(quota(50, 50),)), CRITICAL, False, "is used up: 100 %"),
    ("home-caches", with_folder("home", folder("/home/ada", "nfs4")), REMARK, False,
     "The home folder contains 6 caches, and is on a network file system (nfs4)"),
    ("scratch-unused",
     changed(folders={"scratch": folder("/local/1"), "temporary": folder("/tmp", "tmpfs")}),
     REMARK, False, "disk in /local/1, but the folder /tmp is on another file system (tmpfs)"),
    ("small-files", data(4096), WARNING, False,
     "5,000 files or more, with a median size of 4.00 KiB, on lustre"),
    ("small-files", data(MIB - 1, count=1000), WARNING, False, "1,000 files"),
    ("internet", changed(cluster=NARVAL), REMARK, False, "have no internet"),
    ("internet",
     changed(cluster=NARVAL, environment={"HF_HUB_OFFLINE": "0", "WANDB_MODE": "online"}), REMARK,
     False, "have no internet"),
    ("internet",
     changed(proxy=Proxy(variable="https_proxy", place="proxy:3128", why="Connection refused")),
     WARNING, False, "https_proxy names proxy:3128, which does not answer: Connection refused"),
    ("clock", changed(clock=ClockState(is_synchronised=False, error_s=16.0)), REMARK, False,
     "this node's clock is not synchronised"),
    ("retired-cluster", changed(cluster=PUHTI), WARNING, False,
     "Puhti is retired since 2026-07-31. Its successor is roihu."),
    ("retired-cluster", changed(cluster=ARC4), WARNING, False, "ARC4 is retired."),
]  # fmt: skip

SILENT: list[tuple[str, Snapshot, str, str]] = [
    # id, snapshot, state, a part of what is said
    ("gpus-allocated", SOUND, "fine", "1 GPU is visible; the job was allocated 1"),
    ("gpus-allocated", LAPTOP, "not_applicable", "not a job, and there is no GPU"),
    ("gpus-allocated", changed(allocation=allocation(gpus_held=None)), "not_applicable", "no GPU"),
    ("gpus-allocated", changed(allocation=GRID_ENGINE), "abstained", "does not report how many"),
    ("gpus-allocated", changed(allocation=allocation(gpus_held=4), local_size=4), "fine",
     "1 GPU is visible; the job was allocated 4"),
    ("gpus-allocated", whole_node(gpu(2), gpu(0), gpu(1)), "fine", "was allocated 1 GPU on"),
    ("gpus-allocated", whole_node(gpu(0)), "fine", "1 GPU is visible"),  # numbered from 0
    ("framework-sees-gpus", SOUND, "fine", "pytorch sees 1 GPU"),
    ("framework-sees-gpus", NO_PYTHON, "abstained", "did not answer"),
    ("framework-sees-gpus", changed(python=python(build(), pytorch=NO_ANSWER)), "abstained", "2 s"),
    ("framework-sees-gpus", seeing(gpus=None), "abstained", "does not say how many"),
    ("framework-sees-gpus", changed(python=python(CPU_BUILD)), "not_applicable", "for GPUs"),
    ("framework-sees-gpus", changed(survey=survey(HUNG)), "abstained", "would hang"),
    ("framework-sees-gpus", LAPTOP, "not_applicable", "no GPU here"),
    ("framework-sees-gpus", gpus(part(0), part(1)), "fine", ""),
    ("cpu-only-build", SOUND, "fine", "pytorch for CUDA"),
    ("cpu-only-build", LAPTOP, "not_applicable", "not a login node"),
    ("cpu-only-build", NO_PYTHON, "abstained", "did not answer"),
    ("cpu-only-build",
     changed(python=python(build(kind="unknown", version="2.5.1", toolkit=""))), "abstained",
     "torch 2.5.1 does not report"),
    ("driver-too-old", SOUND, "fine", "here (550.54.15) is new enough for CUDA 12.4"),
    ("driver-too-old", LAPTOP, "not_applicable", "no NVIDIA driver"),
    ("driver-too-old", changed(LAPTOP, cluster=NARVAL, python=python(build())), "abstained",
     "the driver of Narval's compute nodes is not documented"),
    ("driver-too-old", changed(LAPTOP, cluster=LUMI, python=python(build())), "not_applicable",
     "no NVIDIA driver"),
    ("driver-too-old", changed(OLD_SITE, python=python(build())), "fine",
     "on ARC4's compute nodes (one for CUDA 12.0) is new enough"),
    ("packages", SOUND, "fine", "1 package"),
    ("packages", changed(LAPTOP, cluster=NARVAL, python=python(build())), "fine", "1 package"),
    ("packages", changed(LAPTOP, cluster=NIBI, python=python(build())), "fine", "1 package"),
    ("packages", NO_PYTHON, "abstained", "did not answer"),
    ("packages", changed(python=NO_FRAMEWORK), "not_applicable", "no GPU framework"),
    ("driver-too-old", NO_PYTHON, "abstained", "did not answer"),
    ("driver-too-old",
     changed(python=python(build(toolkit="99.1"), pytorch=report(toolkit="99.1"))), "abstained",
     "does not know which driver CUDA 99.1 needs"),
    ("driver-too-old",
     changed(python=python(build(toolkit=""), pytorch=NO_ANSWER)), "abstained", "which CUDA"),
    ("compute-capability", SOUND, "fine", "torch has code for 8.0"),
    ("compute-capability", gpus(gpu(architecture="8.6")), "fine", "8.6"),
    ("compute-capability", gpus(gpu(architecture="10.0")), "fine", "10.0"),  # by PTX
    ("compute-capability", gpus(gpu(architecture="")), "abstained", "does not report"),
    ("compute-capability",
     changed(python=python(build(version="0.0.1"), pytorch=report(architectures=()))), "abstained",
     "does not know for which GPUs torch was compiled"),
    # What is documented of x86_64 does not count on aarch64.
    ("compute-capability", documented("x86_64"), "fine", "has code for 8.0"),
    ("compute-capability", documented("aarch64"), "abstained", "does not know"),
    ("compute-capability", at_login(ARC4, "12.6", "2.12.0"), "fine", "code for"),
    ("compute-capability", at_login(ARC4, "12.1", "9.9.0"), "abstained", "not documented"),
    ("compute-capability", at_login(LUMI, "12.6", "2.12.0"), "not_applicable", "not from NVIDIA"),
    ("compute-capability", LAPTOP, "not_applicable", "no GPU"),
    ("compute-capability", NO_PYTHON, "abstained", "did not answer"),
    ("collectives", gpus(gpu(), gpu(1)), "fine", "pytorch has NCCL or RCCL"),
    ("collectives", SOUND, "not_applicable", "fewer than two GPUs"),
    ("collectives", gpus(gpu(), gpu(1), python=python(build(), pytorch=NO_ANSWER)), "abstained",
     "no framework reports"),
    ("mig", gpus(part(0)), "fine", "1g.5gb"),
    ("mig", SOUND, "not_applicable", "divided"),
    ("container", changed(survey=survey(nvidia(gpu()), system={"container": "Apptainer"})), "fine",
     "can use the GPUs"),
    ("container", SOUND, "not_applicable", "found no container"),
    ("affinity", SOUND, "fine", "12 of the job's 12"),
    ("affinity", changed(survey=survey(cores=tuple(range(6))), threads_per_core=2), "fine", "6 of"),
    ("affinity", changed(survey=survey(cores=(0, 1, 2)), local_size=4), "fine",
     "3 of the job's 12"),
    ("affinity", changed(allocation=allocation(cores_asked=None)), "abstained", "does not report"),
    ("affinity", LAPTOP, "not_applicable", "not a job"),
    ("affinity",
     changed(cluster=ARC4, allocation=allocation(
         scheduler="grid_engine", cores_asked=1, gpus_held=None)),
     "abstained", "does not report"),
    # Ten cores come with each GPU, whatever NSLOTS says.
    ("affinity",
     changed(cluster=ARC4, survey=survey(cores=tuple(range(10))),
             allocation=allocation(scheduler="grid_engine", cores_asked=1)),
     "fine", "10 of the job's 10 cores"),
    ("threads",
     changed(cluster=ARC4, environment={"OMP_NUM_THREADS": "10"},
             allocation=allocation(scheduler="grid_engine", cores_asked=1)),
     "fine", "OMP_NUM_THREADS=10, and each process has 10 cores"),
    ("binding-numa", SOUND, "fine", "NUMA node 0"),
    ("binding-numa", changed(cores_of_numa={}), "abstained", "which NUMA node"),
    ("binding-numa", gpus(gpu(numa_node=None)), "abstained", "NVIDIA A100"),
    ("binding-numa", changed(cores_of_numa={0: frozenset(range(48))}), "not_applicable",
     "one NUMA"),
    ("threads", SOUND, "fine", "OMP_NUM_THREADS=12, and each process has 12 cores"),
    ("threads", with_environment(OMP_NUM_THREADS="15"), "fine",
     "=15, and each process has 12 cores"),
    ("threads", with_cores(7, OMP_NUM_THREADS="1"), "fine", "=1, and each process has 7 cores"),
    ("threads", changed(environment={}), "fine", "only the job's 12 cores"),
    ("threads", with_environment(OMP_NUM_THREADS="12,2"), "fine", "=12"),
    ("threads",
     changed(environment={}, allocation=allocation(cores_asked=48), local_size=4), "fine",
     "only the job's 12 cores"),
    ("threads", changed(environment={}, allocation=allocation(cores_asked=None)), "abstained",
     "is not known"),
    ("threads", LAPTOP, "not_applicable", "not a job"),
    ("openmp-hints", SOUND, "fine", "neither"),
    ("share", changed(cluster=NARVAL), "fine", "12 of 12 cores and 124 of 124 GiB"),
    ("share", changed(cluster=NARVAL, allocation=allocation(cores_asked=6)), "fine", "6 of 12"),
    ("share", SOUND, "not_applicable", "not know this cluster"),
    ("share", changed(cluster=NARVAL, survey=survey(nvidia(gpu(name="Quadro 9")))), "abstained",
     "it is not known how many cores and how much memory Narval intends"),
    ("share",
     changed(cluster=ARC4, survey=survey(nvidia(gpu(name="Tesla V100-SXM2-32GB")))),
     "not_applicable", "automatically with each GPU"),
    ("active-environment", SOUND, "fine", "no environment is active"),
    ("active-environment", with_environment(VIRTUAL_ENV="/home/ada/env"), "fine", "belongs to"),
    ("active-environment",
     changed(with_environment(VIRTUAL_ENV="/home/ada/other"), is_python_named=True),
     "not_applicable", "you named"),
    ("active-environment", NO_PYTHON, "abstained", "did not answer"),
    ("conda-channels", conda("conda-forge", "defaults"), "fine", "conda-forge, defaults"),
    ("conda-channels", conda("nvidia", "bioconda"), "fine", "nvidia, bioconda, without"),
    ("conda-channels", conda("https://mirror.example/conda-forge/", "defaults"), "fine", "by /ho"),
    ("conda-channels", SOUND, "not_applicable", "neither conda nor"),
    ("conda-channels", changed(conda=Conda(command="")), "not_applicable", "neither conda nor"),
    ("conda-channels", conda(), "not_applicable", "names no channel"),
    ("conda-channels", conda("defaults", redefines_defaults=True), "not_applicable",
     "`defaults` can mean any channel"),
    ("conda-channels", changed(conda=NO_ANSWER), "abstained", "did not answer"),
    ("conda-channels", conda(why="Permission denied"), "abstained",
     "/home/ada/.condarc cannot be read: Permission denied"),
    ("limits", SOUND, "fine", "may open 65536 files"),
    ("limits", limited(open_files=1025), "fine", "may open 1025 files"),
    ("limits", of_several_nodes(64 * MIB), "fine", ""),
    ("limits", changed(LAPTOP, limits=ResourceLimits(**LIMITS | {"address_space_bytes": GIB})),
     "fine", ""),
    ("shared-memory", SOUND, "fine", "500 GiB free"),
    ("shared-memory", shared(GIB), "fine", "1.00 GiB free"),
    ("shared-memory", with_folder("shared memory", NO_ANSWER), "abstained", "did not answer"),
    ("disk-space", SOUND, "fine", "500 GiB on /scratch/ada"),
    ("disk-space", current(free_bytes=GIB, free_files=100), "fine", "1.00 GiB on /scratch/ada"),
    ("disk-space", with_folder("home", NO_ANSWER), "abstained", "did not answer"),
    ("disk-space", with_folder("here", folder("/fuse", total_files=0, free_files=0)), "fine", ""),
    ("quota", changed(quotas=(quota(44, 50),)), "fine", "88 %"),
    ("quota", SOUND, "not_applicable", "no limit"),
    ("quota", changed(quotas=NO_ANSWER), "abstained", "did not answer"),
    ("home-caches", SOUND, "fine", "of this node"),
    ("home-caches", with_folder("home", NO_ANSWER), "abstained", "did not answer"),
    ("scratch-unused", SOUND, "not_applicable", "no environment variable"),
    ("scratch-unused", with_folder("scratch", NO_ANSWER), "abstained", "did not answer"),
    ("scratch-unused", with_folder("scratch", folder("/l", mounted_on="/tmp")), "fine", "/tmp"),
    ("small-files", data(MIB), "fine", "1.00 MiB"),
    ("small-files", data(4096, count=999), "fine", "999 files"),
    ("small-files", data(4096, file_system="xfs"), "fine", "of this node"),
    ("small-files", changed(data=NO_ANSWER), "abstained", "did not answer"),
    ("small-files", SOUND, "not_applicable", "--data"),
    ("internet", changed(cluster=NIBI), "fine", "reach the internet"),
    ("internet", changed(cluster=ARC4), "abstained", "is not known"),
    ("internet", changed(proxy=NO_ANSWER), "abstained", "did not answer"),
    ("internet", changed(proxy=Proxy(variable="http_proxy", place="p:1")), "fine", "which answers"),
    ("internet",
     changed(cluster=NARVAL, environment={"HF_HUB_OFFLINE": "1"}), "fine", "HF_HUB_OFFLINE"),
    ("internet", LAPTOP, "not_applicable", "no proxy"),
    ("clock", SOUND, "fine", "0.01 s"),
    ("clock", changed(clock=NO_ANSWER), "abstained", "did not answer"),
    ("retired-cluster", changed(cluster=NARVAL), "fine", "Narval"),
    ("retired-cluster", SOUND, "not_applicable", "not know this cluster"),
]  # fmt: skip

BY_ID = {check.id: check for check in CHECKS}


def result_of(id_: str, snapshot: Snapshot) -> CheckResult:
    (found,) = examine(snapshot, [BY_ID[id_]], 0.1).checks
    assert found.id == id_
    return found


@pytest.mark.parametrize(
    ("id_", "snapshot", "severity", "is_fatal", "words"),
    FOUND,
    ids=[f"{f[0]}-{f[4][:30]}" for f in FOUND],
)
def test_problems_are_found(
    id_: str, snapshot: Snapshot, severity: Severity, is_fatal: bool, words: str
) -> None:
    found = result_of(id_, snapshot)
    assert (found.state, found.result) == ("found", "")
    first = found.symptoms[0]
    assert (first.kind, first.severity, first.is_fatal) == (id_, severity, is_fatal)
    assert words in first.sentence
    assert first.evidence
    assert first.action


@pytest.mark.parametrize(
    ("id_", "snapshot", "state", "words"),
    SILENT,
    ids=[f"{s[0]}-{s[2]}-{s[3][:20]}" for s in SILENT],
)
def test_without_a_problem_the_check_gives_its_reason(
    id_: str, snapshot: Snapshot, state: str, words: str
) -> None:
    found = result_of(id_, snapshot)
    assert (found.state, found.symptoms) == (state, ())
    assert words in found.result


def test_the_commands_for_conda_name_the_file() -> None:
    def action(snapshot: Snapshot) -> str:
        return result_of("conda-channels", snapshot).symptoms[0].action

    both = ("defaults", "conda-forge")
    assert action(conda(*both)) == (
        "Run `conda config --add channels conda-forge`, `conda config --remove channels defaults` "
        "and `conda config --set channel_priority strict`. If you use Anaconda or "
        "Miniconda, leave out the second command, because they need `defaults`."
    )
    assert "`conda config --file '/opt/my conda/.condarc' --remove channels defaults`" in action(
        conda(*both, path="/opt/my conda/.condarc")
    )
    locked = action(conda(*both, path="/etc/conda/condarc", is_writable=False))
    assert "`conda config --add channels conda-forge`" in locked
    assert "/etc/conda/condarc is read-only for you" in locked
    named = changed(conda(*both, path="/x/rc"), environment={"CONDARC": "/x/rc", "HOME": "/home/a"})
    assert "`conda config --remove channels defaults`" in action(named)


def test_small_files_are_packed_with_a_command_that_can_be_copied() -> None:
    action = result_of("small-files", data(4096)).symptoms[0].action
    assert "`teho pack /scratch/images packed`. Your program reads them with `packed` of" in action
    spaced = data(4096, path="/scratch/my images")
    action = result_of("small-files", spaced).symptoms[0].action
    assert "`teho pack '/scratch/my images' packed`" in action
    assert "`tar -cf data.tar -C '/scratch/my images' .`" in action


def test_every_check_has_both_cases_and_says_whether_it_may_doom() -> None:
    assert {case[0] for case in FOUND} == BY_ID.keys()
    assert {case[0] for case in SILENT if case[2] == "fine"} == BY_ID.keys()
    doomed = {case[0] for case in FOUND if case[3]}
    assert doomed == {check.id for check in CHECKS if check.decisive}


def test_a_sound_job_and_a_laptop_have_no_problem() -> None:
    for snapshot in (SOUND, LAPTOP, changed(cluster=NARVAL, environment={"WANDB_MODE": "offline"})):
        examination = examine(snapshot, CHECKS, 0.1)
        assert [one for one in examination.checks if one.state in {"found", "abstained"}] == []
        assert exit_code(examination) == 0


def test_the_exit_code() -> None:
    def code(snapshot: Snapshot, *ids: str) -> int:
        return exit_code(examine(snapshot, chosen(ids), 0.1))

    assert code(with_environment(OMP_NUM_THREADS="48")) == 1
    assert code(with_environment(OMP_NUM_THREADS="1")) == 0  # a remark
    assert code(NO_PYTHON) == 2
    assert code(with_folder("shared memory", NO_ANSWER)) == 0  # it dooms no job
    assert code(NO_PYTHON, "threads") == 0


def test_a_check_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"cpu-only-biuld.*did you mean 'cpu-only-build'"):
        chosen(["cpu-only-biuld"])


def test_amd_gpus_are_judged_by_their_names() -> None:
    devices = [gpu(vendor="amd", name="AMD Instinct MI250X", architecture="gfx90a")]
    answers = Answers(source="amd", devices=tuple(devices))
    rocm = build(kind="rocm", toolkit="6.2", version="2.5.1+rocm6.2")

    def state_with(*architectures: str) -> str:
        seen = report(kind="rocm", toolkit="6.2", architectures=architectures)
        snapshot = changed(survey=survey(answers), python=python(rocm, pytorch=seen))
        return result_of("compute-capability", snapshot).state

    assert state_with("gfx90a:sramecc+:xnack-", "gfx1100") == "fine"
    assert state_with("gfx1100") == "found"


def test_every_check_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \|.*\| (yes|) ?\|$", page, re.MULTILINE))
    assert rows == {check.id: "yes" if check.decisive else "" for check in CHECKS}
