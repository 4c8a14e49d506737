"""A framework has code for these GPUs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from teho.doctor.outcome import Outcome, fine, moot, spared, symptom, unknown
from teho.doctor.snapshot import FrameworkReport, Python, Snapshot
from teho.explain.wording import joined
from teho.model.device import Device
from teho.model.doctor import Symptom
from teho.model.finding import Severity
from teho.model.missing import Missing
from teho.model.software import Build
from teho.software.drivers import capability_of, numbers
from teho.software.releases import supports

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "compute-capability"
ABOUT = "what the frameworks' kernels were compiled for, against these GPUs"
DECISIVE = True

_CODE = re.compile(r"(sm|compute)_(\d+)(\d)[a-z]?")


def check(snapshot: Snapshot) -> Outcome:
    """Compare each GPU's compute capability with what the framework says of its kernels.

    By NVIDIA's CUDA C++ programming guide: binary code (`sm_80`) runs on GPUs of the same major
    and the same or a higher minor number; PTX (`compute_80`) is compiled for any later one.
    """
    python = snapshot.python
    if isinstance(python, Missing):
        return unknown(f"no Python could be asked: {python.detail}")
    if not snapshot.gpus and not snapshot.site_gpus:
        return moot("no GPU is here")
    builds = [one for one in python.frameworks if python.kind_of(one) != "cpu"]
    if not builds:
        return moot(f"no framework for GPUs in {python.path}")
    if not snapshot.gpus:
        return _of_site(snapshot, python, builds)
    devices = [device for device in snapshot.gpus if device.architecture]
    if len(devices) < len(snapshot.gpus):
        return unknown("the driver does not report every GPU's compute capability")
    found: list[Symptom] = []
    unsure: list[str] = []
    for build in builds:
        told = python.framework_reports.get(build.framework)
        report = told if isinstance(told, FrameworkReport) else FrameworkReport()
        runs = [
            (_runs(build, report, device.architecture, python.machine), device)
            for device in devices
        ]
        if lacking := [device for can, device in runs if can is False]:
            found.append(_found(build, report, lacking, dooms=len(lacking) == len(devices)))
        elif any(can is None for can, _ in runs):
            unsure.append(build.package)
    if found:
        return spared(found, len(builds))
    if unsure:
        return unknown(f"what {joined(sorted({*unsure}))} was compiled for is not known")
    shown = joined(sorted({device.architecture for device in devices}))
    names = [build.package for build in builds]
    return fine(f"{joined(names)} {'has' if len(names) == 1 else 'have'} code for {shown}")


def _of_site(snapshot: Snapshot, python: Python, builds: Sequence[Build]) -> Outcome:
    """Compare builds with the GPUs of the compute nodes, by what is documented of both."""
    title = snapshot.cluster.title if snapshot.cluster else ""
    models = dict.fromkeys(
        gpu.model for gpu in snapshot.site_gpus if gpu.vendor == "nvidia" and not gpu.part_of
    )
    if not models:
        return moot(f"the GPUs of {title} are not NVIDIA's")
    found: list[Symptom] = []
    is_known = True
    for build in builds:
        runs = {
            model: _runs(build, FrameworkReport(), capability_of(model) or "", python.machine)
            for model in models
        }
        is_known &= None not in runs.values()
        if lacking := [model for model, can in runs.items() if can is False]:
            alone = len(lacking) == len(models)
            found.append(
                symptom(
                    ID,
                    Severity.CRITICAL if alone else Severity.WARNING,
                    f"{build.package} {build.version} has no code for {title}'s {joined(lacking)}.",
                    f"Install one that has: `teho env plan --framework {build.framework}`"
                    f"{'.' if alone else ', with `--gpu-type`; or ask for another GPU.'}",
                    ("compute capability", capability_of(lacking[0]) or "", ""),
                    ("CUDA of the build", build.toolkit, ""),
                )
            )
    if found:
        return found
    return fine(f"they have code for {joined(list(models))}") if is_known else unknown(
        f"whether they have code for {joined(list(models))} is not documented"
    )  # fmt: skip


def _runs(build: Build, report: FrameworkReport, architecture: str, machine: str) -> bool | None:
    """Tell it by what the framework says of itself, or else by what is documented of its build."""
    if report.architectures:
        return _has_code(report.architectures, architecture)
    if build.kind != "cuda":
        return None
    channel = "conda" if build.evidence.startswith("build ") else "pip"
    return supports(architecture, build.framework, build.version, build.toolkit, channel, machine)


def _has_code(compiled_for: tuple[str, ...], architecture: str) -> bool:
    own = numbers(architecture)
    if not own:  # AMD: names such as gfx90a, with features behind a colon
        return any(code.partition(":")[0] == architecture for code in compiled_for)
    for code in compiled_for:
        if found := _CODE.fullmatch(code):
            of = (int(found[2]), int(found[3]))
            if of[0] == own[0] and of <= own:
                return True
            if found[1] == "compute" and of <= own:
                return True
    return False


def _found(
    build: Build, report: FrameworkReport, lacking: Sequence[Device], *, dooms: bool
) -> Symptom:
    device = lacking[0]
    return symptom(
        ID,
        Severity.CRITICAL,
        f"{build.package} {build.version} has no code for {device.name}, which is "
        f"{device.architecture}.",
        "Install a version that has: `teho env plan` proposes the newest that runs on this GPU.",
        ("compute capability", device.architecture, ""),
        ("compiled for", " ".join(report.architectures) or "only newer GPUs", ""),
        dooms=dooms,
    )
