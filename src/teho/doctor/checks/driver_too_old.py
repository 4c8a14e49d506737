"""Is the driver new enough for the CUDA version of the frameworks?"""

from __future__ import annotations

from teho.doctor.outcome import (
    Outcome,
    critical,
    fine,
    needs_python,
    not_applicable,
    unknown,
    without_fatal,
)
from teho.doctor.snapshot import Python, Snapshot
from teho.explain.wording import joined
from teho.model.software import Build
from teho.software.choose import driver_runs
from teho.software.drivers import lowest_driver

__all__ = ["ABOUT", "DECISIVE", "check"]

ABOUT = "NVIDIA's driver, and the CUDA version of the frameworks"
DECISIVE = True


@needs_python
def check(snapshot: Snapshot, python: Python) -> Outcome:
    """Compare the driver's version with the lowest that each CUDA version needs."""
    driver, cluster = snapshot.nvidia_driver, snapshot.cluster
    toolkits = {
        one.framework: toolkit for one in python.frameworks if (toolkit := _toolkit(python, one))
    }
    if driver is None:
        is_nvidia = any(gpu.vendor == "nvidia" for gpu in snapshot.site_gpus)
        if toolkits and cluster and is_nvidia:
            return unknown(
                f"the driver of {cluster.title}'s compute nodes is not documented; run "
                "`nvidia-smi` in a job to see it"
            )
        return not_applicable("no NVIDIA driver here")
    if not toolkits:
        if any(python.kind_of(one) == "cuda" for one in python.frameworks):
            return unknown("no framework reports which CUDA it was built with")
        return not_applicable(f"{python.path} has no framework for CUDA")
    runs = {name: driver_runs(driver, toolkit) for name, toolkit in toolkits.items()}
    shown = driver.version or f"one for CUDA {driver.cuda}"
    found = [
        critical(
            f"The driver {driver.where} is too old for {name}: CUDA {toolkits[name]} needs "
            f"driver {least} or newer, but this driver is {shown}.",
            f"Install a build for an older CUDA: `teho env plan --framework {name}` proposes the "
            f"newest build that works with this driver.",
            ("driver", shown, ""),
            ("oldest driver that works", least, ""),
            ("CUDA of the build", toolkits[name], ""),
            is_fatal=snapshot.expects_gpus,
        )
        for name, can in runs.items()
        if can is False
        for least in (".".join(map(str, lowest_driver(toolkits[name]) or ())),)
    ]
    if found:
        return without_fatal(found, len(python.gpu_builds))
    if unsure := [toolkits[name] for name, can in runs.items() if can is None]:
        return unknown(f"Teho does not know which driver CUDA {joined(unsure)} needs")
    needs = joined([f"CUDA {toolkit} of {name}" for name, toolkit in toolkits.items()])
    return fine(f"the driver {driver.where} ({shown}) is new enough for {needs}")


def _toolkit(python: Python, build: Build) -> str:
    report = python.report_of(build)
    if report.kind == "cuda" and report.toolkit:
        return report.toolkit
    return build.toolkit if build.kind == "cuda" else ""
