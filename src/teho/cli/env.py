"""`teho env`: software that uses the GPU, planned for a cluster and checked before the job."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from teho.cli.declare import option
from teho.cli.here import chosen_cluster, cluster_here
from teho.cli.output import Output, output_options
from teho.errors import InputError
from teho.model.cluster import EnvironmentKind
from teho.model.software import Framework

if TYPE_CHECKING:
    from teho.model.software import Checked
    from teho.software.check import Target

__all__ = ["command"]

_DRIVER_S = 10.0
_PYTHON_S = 30.0
"""Time limit for a Python, which may be on a network file system that was just mounted."""


_gpu_type_option = option("--gpu-type TYPE", "Choose a GPU type, if the cluster has several.",
                          unset="the type with the most GPUs", default="")  # fmt: skip


@click.group(
    no_args_is_help=False,  # one line says what is missing
    epilog="""\b
Examples:
  teho env plan --help
  teho env check
  teho env check pytorch-gpu.lock.txt""",
)
def command() -> None:
    """Plan software that uses the GPU, and check installed software."""


@command.command(
    short_help="Print the commands that install a GPU build on a cluster.",
    epilog="""\b
Examples:
  teho env plan --cluster arc4 --framework pytorch --python 3.13
  teho env plan --cluster roihu --framework jax --kind venv --with optax --with flax
  teho env plan --cluster aire --framework pytorch --driver 570.124.06
  teho env plan --cluster narval --framework pytorch --format json > torch.json""",
)
@option("--cluster NAME", "Plan for this cluster.", unset="this machine's cluster", into="name")
@click.argument("framework", metavar="[FRAMEWORK]", required=False,
                type=click.Choice(get_args(Framework)))  # fmt: skip
@option("--framework", "Plan this framework. This option does the same as FRAMEWORK.", into="same",
        type=click.Choice(get_args(Framework)))  # fmt: skip
@option("--version VERSION", "Use this version of the framework, such as 2.12.",
        unset="the newest for the cluster", default="")  # fmt: skip
@option("--python VERSION", "Use this version of Python, such as 3.12.",
        unset="the newest for this framework", default="")  # fmt: skip
@option("--with PACKAGE", "Also install this package; may be repeated.", unset="none", into="extra",
        multiple=True)  # fmt: skip
@option("--kind", "Make this kind of environment.", unset="as the cluster's documents advise",
        type=click.Choice(get_args(EnvironmentKind)))  # fmt: skip
@option("--name NAME", "Name the environment.", unset="a name such as pytorch-gpu", into="env_name",
        default="")  # fmt: skip
@option("--place DIR", "Make the environment in this directory.",
        unset="as the cluster's documents say", default="")  # fmt: skip
@_gpu_type_option
@option("--driver VERSION", "Plan for this NVIDIA driver, as nvidia-smi shows it.",
        unset="the cluster's driver", default="")  # fmt: skip
@option("--tool", "Make the environment with this tool.", unset="the cluster's conda",
        type=click.Choice(["conda", "mamba", "micromamba"]))  # fmt: skip
@output_options()
def plan(
    name: str | None,
    framework: Framework | None,
    same: Framework | None,
    env_name: str,
    output: Output,
    **given: Any,
) -> None:
    """Print a script that installs the newest fitting GPU build, and say why this build fits.

    The build fits the cluster's GPUs, their driver and the cluster's rules. `teho plan --env FILE`
    puts the output of --format json into the script of a job. Exit code: 0 if a build fits, 1 if
    no build fits.

    Reads: the catalogue.

    Writes: only the -o file.

    Network: not used.
    """
    from teho.software.recipe import EnvironmentRequest, NothingFits, plan_environment

    cluster = chosen_cluster(name)
    kind, tool = given.pop("kind"), given.pop("tool")
    if framework and same and framework != same:
        raise InputError(f"{framework} and --framework {same}", "one of them")
    wanted = framework or same
    if wanted is None:
        raise InputError("no FRAMEWORK", f"one of {', '.join(get_args(Framework))}")
    request = EnvironmentRequest(
        framework=wanted, name=env_name, kind=kind, tool=tool or "", **given
    )
    found = plan_environment(cluster, request)
    if isinstance(found, NothingFits):
        from teho.show.build.env import refused_document

        # Standard output may go into a script, which must not contain reasons.
        output.show(refused_document(found.what, found.refused), stream=sys.stderr)
        raise click.exceptions.Exit(1)
    from teho.show.build.env import env_plan_document
    from teho.show.text.env_script import render_script

    output.show(env_plan_document(found), found, script=render_script(found))


@command.command(
    short_help="Check whether builds are for GPUs, and whether they fit the driver.",
    epilog="""\b
Examples:
  teho env check
  teho env check --python ~/venv/bin/python --cluster roihu
  conda create --dry-run -n torch pytorch | teho env check - --cluster arc4
  pip freeze | teho env check - --driver 535.104.05""",
)
@click.argument("file", metavar="[FILE]", required=False,
                type=click.Path(path_type=Path, allow_dash=True))  # fmt: skip
@option("--python PATH", "Check the environment of this Python.", unset="python")
@option("--cluster NAME", "Use the driver and GPUs of this cluster's nodes.",
        unset="the driver and GPUs of this machine", into="name")  # fmt: skip
@_gpu_type_option
@option("--driver VERSION", "Use this NVIDIA driver.", unset="the driver of this machine",
        default="")  # fmt: skip
@output_options()
def check(
    file: Path | None,
    python: str | None,
    name: str | None,
    gpu_type: str,
    driver: str,
    output: Output,
) -> None:
    """Say which packages are GPU builds and which are CPU-only builds, and what to do.

    FILE is a list of packages: a lock file, or the output of `conda list`, `conda create`, `pip
    freeze` or a similar command. - is standard input. Without FILE, Teho checks the packages of the
    Python of --python, but does not import them. Exit code: 0 if there is no critical problem, 1 if
    there is a critical problem, 2 if FILE or the environment cannot be read.

    Reads: FILE, or the packages of the Python; the catalogue; the driver of this node.

    Writes: only the -o file.

    Network: not used.
    """
    if file is not None and python is not None:
        raise InputError("FILE cannot be used together with --python", "one of them")
    target = _target(name, gpu_type, driver)
    found = _check_python(python, target) if file is None else _check_file(file, target)
    from teho.show.build.env import checked_document

    output.show(checked_document(found), found)
    if any(problem.severity == "critical" for problem in found.problems):
        raise click.exceptions.Exit(1)


def _target(name: str | None, gpu_type: str, driver: str) -> Target:
    """Return the driver and GPUs that the environment needs to fit: of a cluster, or of this node.

    On a node without a driver, such as a login node, they are the ones of its cluster.
    """
    from teho.model.software import Driver
    from teho.software.check import Target
    from teho.software.drivers import newest_cuda
    from teho.software.recipe import target_of

    if name is not None:
        return target_of(chosen_cluster(name), gpu_type, driver)
    if gpu_type:
        raise InputError("--gpu-type without --cluster", "`--cluster NAME` too")
    if driver:
        cuda = newest_cuda(driver) or ""
        return Target(driver=Driver(version=driver, cuda=cuda, where="--driver"))
    target = _this_node()
    if target.driver is None and (here := cluster_here()) is not None:
        with contextlib.suppress(InputError):  # the cluster has no GPUs
            return target_of(here)
    return target


def _this_node() -> Target:
    """Ask the driver of this node in another process; without an answer, the target is empty."""
    from teho.model.device import Device
    from teho.model.software import Driver
    from teho.process.isolated_call import IsolatedCall, NoAnswer, answering
    from teho.software.check import Target

    def ask() -> tuple[dict[str, str], tuple[Device, ...]]:
        from teho.devices.sources import other_devices, versions_of

        return versions_of("nvidia", Path("/")), other_devices("nvidia", Path("/"), ())

    answer = IsolatedCall("the NVIDIA driver", answering(ask), _DRIVER_S).answer(
        tuple[dict[str, str], tuple[Device, ...]]
    )
    versions, gpus = ({}, ()) if isinstance(answer, NoAnswer) else answer
    version = versions.get("driver by NVML", "")
    if not version:
        return Target()
    cuda = versions.get("CUDA of the driver", "")
    return Target(
        driver=Driver(version=version, cuda=cuda, where="this node", source="NVML"),
        vendor="nvidia",
        gpu=gpus[0].name if gpus else "",
        capability=gpus[0].architecture if gpus else "",
    )


def _check_file(file: Path, target: Target) -> Checked:
    from teho.software.check import check as check_packages
    from teho.software.listing import read_listing

    source = "standard input" if str(file) == "-" else str(file)
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}", "a file that you can read") from error
    listing = read_listing(data.decode(errors="replace"), source)
    return check_packages(listing.packages, source=source, form=listing.form, target=target)


def _check_python(python: str | None, target: Target) -> Checked:
    """Let a Python, or the first on the PATH, list its packages in another process.

    Raises:
        InputError: the Python does not run, or does not answer.
    """
    import msgspec

    from teho.process.isolated_call import IsolatedCall, NoAnswer, executing
    from teho.software.check import check as check_packages
    from teho.software.live import PROGRAM, read_answer

    # The program must not import from the directory that it is in.
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    path = str(Path(python).expanduser()) if python else shutil.which("python") or "python3"
    answer = IsolatedCall(path, executing([path, str(PROGRAM)], environment), _PYTHON_S).output()
    wish = "a Python of 3.8 or later, such as `--python ~/venv/bin/python`"
    if isinstance(answer, NoAnswer):
        raise InputError(answer.why, wish)
    try:
        installed = read_answer(answer)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path} does not list what is installed: {error}", wish) from error
    return check_packages(
        installed.packages,
        source=path,
        form="installed packages",
        target=target
        if target.cluster
        else msgspec.structs.replace(target, arch=installed.machine),
        facts=installed.facts,
        python=installed.python,
    )
