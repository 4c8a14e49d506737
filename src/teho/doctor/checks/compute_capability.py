"""Do the frameworks have code for these GPUs?"""

from __future__ import annotations

from collections.abc import Sequence

from teho.doctor.outcome import (
    Outcome,
    critical,
    fine,
    needs_python,
    not_applicable,
    unknown,
    warning,
    without_fatal,
)
from teho.doctor.snapshot import FrameworkReport, Python, Snapshot
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.model.software import Build
from teho.patterns import lazy_pattern
from teho.software.drivers import capability_of, numbers
from teho.software.releases import supports

__all__ = ["ABOUT", "DECISIVE", "check"]

ABOUT = "GPUs that the frameworks' kernels were compiled for"
DECISIVE = True

_CODE = lazy_pattern(r"(sm|compute)_(\d+)(\d)[a-z]?")


@needs_python
def check(snapshot: Snapshot, python: Python) -> Outcome:
    """Compare each GPU's compute capability with what the framework reports of its kernels.

    By NVIDIA's CUDA C++ programming guide: binary code (`sm_80`) runs on GPUs of the same major
    and the same or a higher minor number. PTX (`compute_80`) is compiled for any later one.
    """
    if not snapshot.gpus and not snapshot.site_gpus:
        return not_applicable("no GPU here")
    builds = python.gpu_builds
    if not builds:
        return not_applicable(f"{python.path} has no framework for GPUs")
    if not snapshot.gpus:
        return _of_site(snapshot, python, builds)
    architectures: dict[str, str] = {}
    for device in snapshot.gpus:
        architectures.setdefault(device.architecture, device.name)
    if "" in architectures:
        return unknown("the driver does not report every GPU's compute capability")
    found: list[Symptom] = []
    unsure: set[str] = set()
    for build in builds:
        report = python.report_of(build)
        runs = {one: _runs(build, report, one, python.machine) for one in architectures}
        lacking = [one for one, can in runs.items() if can is False]
        if lacking:
            found.append(
                critical(
                    f"{build.package} {build.version} has no code for "
                    f"{architectures[lacking[0]]} (compute capability {lacking[0]}).",
                    "Install another version: `teho env plan` proposes the newest version that "
                    "runs on this GPU.",
                    ("compute capability", lacking[0], ""),
                    ("compiled for", " ".join(report.architectures) or "only newer GPUs", ""),
                    is_fatal=len(lacking) == len(runs),
                )
            )
        elif None in runs.values():
            unsure.add(build.package)
    if found:
        return without_fatal(found, len(builds))
    if unsure:
        return unknown(f"Teho does not know for which GPUs {joined(sorted(unsure))} was compiled")
    names = [build.package for build in builds]
    have = "has" if len(names) == 1 else "have"
    return fine(f"{joined(names)} {have} code for {joined(sorted(architectures))}")


def _of_site(snapshot: Snapshot, python: Python, builds: Sequence[Build]) -> Outcome:
    """Compare builds with the GPUs of the compute nodes, by the documentation of both."""
    title = snapshot.cluster.title if snapshot.cluster else ""
    models = dict.fromkeys(
        gpu.model for gpu in snapshot.site_gpus if gpu.vendor == "nvidia" and not gpu.part_of
    )
    if not models:
        return not_applicable(f"the GPUs of {title} are not from NVIDIA")
    found: list[Symptom] = []
    is_known = True
    for build in builds:
        runs = {
            model: _runs(build, FrameworkReport(), capability_of(model) or "", python.machine)
            for model in models
        }
        is_known &= None not in runs.values()
        if lacking := [model for model, can in runs.items() if can is False]:
            is_all = len(lacking) == len(models)
            found.append(
                (critical if is_all else warning)(
                    f"{build.package} {build.version} has no code for {title}'s {joined(lacking)}.",
                    "Install another version: "
                    f"`teho env plan --framework {build.framework}` proposes one"
                    f"{'.' if is_all else ' (add `--gpu-type`). Or request another GPU.'}",
                    ("compute capability", capability_of(lacking[0]) or "", ""),
                    ("CUDA of the build", build.toolkit, ""),
                )
            )
    if found:
        return found
    names = joined(list(models))
    if is_known:
        return fine(f"the frameworks have code for {names}")
    return unknown(f"it is not documented whether the frameworks have code for {names}")


def _runs(build: Build, report: FrameworkReport, architecture: str, machine: str) -> bool | None:
    """Judge by what the framework reports, otherwise by the documentation of its build."""
    if report.architectures:
        return _has_code(report.architectures, architecture)
    if build.kind != "cuda":
        return None
    channel = "conda" if build.evidence.startswith("build ") else "pip"
    return supports(architecture, build.framework, build.version, build.toolkit, channel, machine)


def _has_code(compiled_for: tuple[str, ...], architecture: str) -> bool:
    own = numbers(architecture)
    if not own:  # AMD: names such as gfx90a, with features after a colon
        return any(code.partition(":")[0] == architecture for code in compiled_for)
    for code in compiled_for:
        if found := _CODE.fullmatch(code):
            compiled = (int(found[2]), int(found[3]))
            is_same_major = found[1] == "compute" or compiled[0] == own[0]
            if is_same_major and compiled <= own:
                return True
    return False
