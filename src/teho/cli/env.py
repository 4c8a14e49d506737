"""`teho env`: software that uses the GPU, planned for a cluster and checked before the job."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from teho.cli.output import Output, output_options
from teho.errors import InputError
from teho.model.cluster import EnvironmentKind
from teho.model.software import Framework

if TYPE_CHECKING:
    from teho.model.cluster import Cluster
    from teho.model.software import Checked
    from teho.software.check import Target

__all__ = ["command"]

_DRIVER_S = 10.0
_PYTHON_S = 30.0
"""A Python on a network file system that has just been mounted may take so long."""


@click.group(
    no_args_is_help=False,  # what is missing is told in a line
    epilog="""\b
Examples:
  teho env plan --help
  teho env check
  teho env check pytorch-gpu.lock.txt""",
)
def command() -> None:
    """Get software that uses the GPU, and tell whether what is there does."""


@command.command(
    short_help="The commands that install a GPU build on a cluster.",
    epilog="""\b
Examples:
  teho env plan --cluster arc4 --framework pytorch --python 3.13
  teho env plan --cluster roihu --framework jax --kind venv --with optax --with flax
  teho env plan --cluster aire --framework pytorch --driver 570.124.06
  teho env plan --cluster narval --framework pytorch --format json > torch.json""",
)
@click.option("--cluster", "name", metavar="NAME", help="Where.  [default: where this runs]")
@click.argument("framework", metavar="[FRAMEWORK]", required=False,
                type=click.Choice(get_args(Framework)))  # fmt: skip
@click.option("--framework", "option", type=click.Choice(get_args(Framework)),
              help="The same as FRAMEWORK.")  # fmt: skip
@click.option("--version", metavar="VERSION", default="", help="Of the framework, such as 2.12.")
@click.option("--python", metavar="VERSION", default="", help="Of Python, such as 3.12.")
@click.option("--with", "extra", metavar="PACKAGE", multiple=True,
              help="One more package; may be given again.")  # fmt: skip
@click.option("--kind", type=click.Choice(get_args(EnvironmentKind)),
              help="[default: as the site advises]")  # fmt: skip
@click.option("--name", "env_name", metavar="NAME", default="",
              help="Of the environment.  [default: such as pytorch-gpu]")  # fmt: skip
@click.option("--place", metavar="DIR", default="",
              help="Directory for it.  [default: the site's]")  # fmt: skip
@click.option("--gpu-type", metavar="TYPE", default="", help="Where the cluster has several.")
@click.option("--driver", metavar="VERSION", default="",
              help="NVIDIA's on the compute nodes, as nvidia-smi shows it.")  # fmt: skip
@click.option("--tool", type=click.Choice(["conda", "mamba", "micromamba"]),
              help="Your own.  [default: the site's conda]")  # fmt: skip
@output_options()
def plan(
    name: str | None,
    framework: Framework | None,
    option: Framework | None,
    env_name: str,
    output: Output,
    **given: Any,
) -> None:
    """Write a script that installs a GPU build of a framework, the newest that fits, and say why.

    It fits the cluster's GPUs, their driver and the site's rules; nothing is run. With `teho plan
    --env FILE`, what --format json writes goes into a job's script. Exit code: 0 something fits,
    1 nothing does.
    """
    from teho.software.recipe import Asked, NothingFits, plan_environment

    cluster = _cluster(name)
    kind, tool = given.pop("kind"), given.pop("tool")
    if framework and option and framework != option:
        raise InputError(f"{framework} and --framework {option}", "one of them")
    wanted = framework or option
    if wanted is None:
        raise InputError("no FRAMEWORK", f"one of {', '.join(get_args(Framework))}")
    asked = Asked(framework=wanted, name=env_name, kind=kind, tool=tool or "", **given)
    found = plan_environment(cluster, asked)
    if isinstance(found, NothingFits):
        from teho.show.build.env import refused_document

        # In a script that standard output makes, reasons are out of place.
        output.show(refused_document(found.what, found.refused), stream=sys.stderr)
        raise click.exceptions.Exit(1)
    from teho.show.build.env import env_plan_document
    from teho.show.text.env_script import render_script

    output.show(env_plan_document(found), found, script=render_script(found))


@command.command(
    short_help="Is it a GPU build, and does the driver run it?",
    epilog="""\b
Examples:
  teho env check
  teho env check --python ~/venv/bin/python --cluster roihu
  conda create --dry-run -n torch pytorch | teho env check - --cluster arc4
  pip freeze | teho env check - --driver 535.104.05""",
)
@click.argument("file", metavar="[FILE]", required=False,
                type=click.Path(path_type=Path, allow_dash=True))  # fmt: skip
@click.option("--python", metavar="PATH", help="This interpreter's environment.  [default: python]")
@click.option("--cluster", "name", metavar="NAME", help="Against the driver and GPUs of its nodes.")
@click.option("--gpu-type", metavar="TYPE", default="", help="Where the cluster has several.")
@click.option("--driver", metavar="VERSION", default="", help="Against this driver of NVIDIA.")
@output_options()
def check(
    file: Path | None,
    python: str | None,
    name: str | None,
    gpu_type: str,
    driver: str,
    output: Output,
) -> None:
    """Tell GPU builds from CPU-only builds, in FILE or in an environment, and what to do.

    FILE is the output of `conda list`, `conda create`, `pip freeze` or similar, or a lock file; -
    is standard input. Without FILE, a Python lists its packages; none is imported. Exit code: 0 no
    critical problem was found, 1 at least one was, 2 FILE or the environment cannot be read.
    """
    if file is not None and python is not None:
        raise InputError("a FILE and --python together", "one of them")
    target = _target(name, gpu_type, driver)
    found = _of_python(python, target) if file is None else _of_file(file, target)
    from teho.show.build.env import checked_document

    output.show(checked_document(found), found)
    if any(problem.severity == "critical" for problem in found.problems):
        raise click.exceptions.Exit(1)


def _cluster(name: str | None) -> Cluster:
    """Return the cluster of that name, or the one that this machine belongs to."""
    from teho.clusters.catalogue import load_cluster

    if name is not None:
        return load_cluster(name)
    here = _here()
    if here is None:
        raise InputError(
            f"this machine, {os.uname().nodename}, belongs to no cluster that Teho knows",
            "`--cluster NAME`",
            "`teho clusters` lists them",
        )
    return here


def _here() -> Cluster | None:
    from teho.clusters.catalogue import load_catalogue
    from teho.clusters.current import current_cluster

    return current_cluster(os.environ, os.uname().nodename, load_catalogue().values())


def _target(name: str | None, gpu_type: str, driver: str) -> Target:
    """Return what the environment is compared with: a cluster's nodes, else this node.

    On a node without a driver, as login nodes are, it is the nodes of the cluster around it.
    """
    from teho.model.software import Driver
    from teho.software.check import Target
    from teho.software.drivers import newest_cuda
    from teho.software.recipe import target_of

    if name is not None:
        return target_of(_cluster(name), gpu_type, driver)
    if gpu_type:
        raise InputError("--gpu-type without --cluster", "a cluster that has it")
    if driver:
        cuda = newest_cuda(driver) or ""
        return Target(driver=Driver(version=driver, cuda=cuda, where="--driver"))
    target = _this_node()
    if target.driver is None and (here := _here()) is not None:
        with contextlib.suppress(InputError):  # it has no GPUs
            return target_of(here)
    return target


def _this_node() -> Target:
    """Ask this node's driver, in a process of its own; what does not answer is not known."""
    from teho.model.device import Device
    from teho.model.software import Driver
    from teho.process.isolated_call import IsolatedCall, NoAnswer, answering
    from teho.software.check import Target

    def ask() -> tuple[dict[str, str], tuple[Device, ...]]:
        from teho.devices.sources import other_devices, versions_of

        return versions_of("nvidia", Path("/")), other_devices("nvidia", Path("/"), ())

    told = IsolatedCall("the NVIDIA driver", answering(ask), _DRIVER_S).answer(
        tuple[dict[str, str], tuple[Device, ...]]
    )
    if isinstance(told, NoAnswer):
        return Target()
    versions, gpus = told
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


def _of_file(file: Path, target: Target) -> Checked:
    from teho.software.check import check as check_packages
    from teho.software.listing import read_listing

    source = "standard input" if str(file) == "-" else str(file)
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}", "a file that you can read") from error
    listing = read_listing(data.decode(errors="replace"), source)
    return check_packages(listing.packages, source=source, form=listing.form, target=target)


def _of_python(python: str | None, target: Target) -> Checked:
    """Ask an interpreter, or the first on the PATH, what is beside it, in a process of its own.

    Raises:
        InputError: it does not run, or does not answer.
    """
    import msgspec

    from teho.process.isolated_call import IsolatedCall, NoAnswer, executing
    from teho.software.check import check as check_packages
    from teho.software.live import PROGRAM, read_answer

    # Where the program lies is no place to import from.
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
