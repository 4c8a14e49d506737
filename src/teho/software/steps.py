"""The commands that make an environment, by how it is had; pure text, for bash."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from teho.model.cluster import Environments, Software
from teho.model.software import Framework, Proposal, SetupStep
from teho.schedulers.script.quoting import bash_word
from teho.software.drivers import cudnn_fits, numbers

__all__ = [
    "Made",
    "Needs",
    "conda_activation",
    "of_apptainer",
    "of_conda",
    "of_container",
    "of_module",
    "of_tykky",
    "of_venv",
    "of_wheelhouse",
]

_HIDES = (
    "CONDA_OVERRIDE_CUDA makes conda believe in a GPU that this machine does not have. It is "
    "set for one command, and never in ~/.bashrc: there it would hide that a GPU is missing."
)
_PIP = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax", "cupy": "cupy"}
_CONDA = {"pytorch": "pytorch", "tensorflow": "tensorflow", "jax": "jaxlib", "cupy": "cupy"}
_URLS = (
    "import json, pathlib, sys; "
    'records = pathlib.Path(sys.prefix, "conda-meta").glob("*.json"); '
    'print(*sorted(json.loads(one.read_text())["url"] for one in records), sep="\\n")'
)
"""Says where conda had each package from: pip names folders on the machine that built them."""
_OLD_CUDNN = "9.11"
"""First that is not for GPUs before Turing; see `cuda.toml`."""


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What the commands depend on."""

    framework: Framework
    name: str
    version: str
    python: str
    extra: tuple[str, ...]
    cluster: str
    environments: Environments
    proposal: Proposal | None
    cuda: str
    """What CONDA_OVERRIDE_CUDA says."""
    vendor: str
    capability: str
    tool: str
    place: str
    """The user's own directory for environments, word for word; empty: the site's."""

    @property
    def lock(self) -> str:
        """Name of the file that holds what was installed."""
        return f"{self.name}.lock.txt"

    def path(self, inside: str = "") -> str:
        """Return where the environment lies, or what it has there, as a word of bash."""
        return self.file(f"/{inside}" if inside else "")

    def file(self, suffix: str) -> str:
        """Return the path of what is named after the environment, beside it, as a word of bash."""
        if self.place:
            return bash_word(f"{self.place.rstrip('/')}/{self.name}{suffix}")
        return f'"{self.environments.place}/{self.name}{suffix}"'  # the site's variables count

    @property
    def toolkit_major(self) -> int:
        """Major version of the toolkit that was chosen."""
        return numbers(self.proposal.toolkit)[0] if self.proposal else 0


class Made(NamedTuple):
    """The commands for a login node, and those for each job."""

    steps: tuple[SetupStep, ...]
    job: tuple[str, ...]
    run_prefix: str = ""
    cautions: tuple[str, ...] = ()


def of_module(needs: Needs, software: Software) -> Made:
    """The site's module, with packages of the user's own on top of it."""
    lines = _of_version(software.lines, needs.version)
    named = ", ".join(software.versions)
    versions = f" Versions: {named}; the first is the default." if named else ""
    brings = "CUDA" if needs.vendor == "nvidia" else "ROCm"
    steps = [
        SetupStep(
            comment=f"The site's module, which brings {brings} along.{versions}", lines=lines
        ),
        SetupStep(comment="What is in it.", lines=("pip list",)),
    ]
    activate: tuple[str, ...] = ()
    if needs.extra:
        activate = (f"source {needs.path('bin/activate')}",)
        steps.append(
            SetupStep(
                comment="Your own packages, on top of what the module holds.",
                lines=(
                    f"python3 -m venv --system-site-packages {needs.path()}",
                    *activate,
                    f"pip install {_words(needs.extra)}",
                ),
            )
        )
    steps += _kept(needs, f"pip freeze > {needs.lock}")
    return Made(tuple(steps), (*lines, *activate))


def of_container(needs: Needs, software: Software) -> Made:
    """The site's container, with packages of the user's own in one file beside it."""
    enter = software.run_prefix
    steps = [
        SetupStep(comment="The site's container.", lines=software.lines),
        SetupStep(comment="What is in it.", lines=(f"{enter} pip list",)),
    ]
    lines, prefix = software.lines, enter
    if needs.extra:
        runtime, image = enter.split(" ")[0], enter.split(" ")[-1]
        packed = needs.file(".sqsh")
        inner = f"source {needs.name}/bin/activate && pip install {_words(needs.extra)}"
        steps.append(
            SetupStep(
                comment="Your own packages: a virtual environment that sees the container's, "
                "in one file, for thousands of small ones are slow on Lustre.",
                lines=(
                    f"{enter} python -m venv --system-site-packages {needs.name}",
                    f"{enter} bash -c {bash_word(inner)}",
                    f"mksquashfs {needs.name} {packed} -processors 1 -no-xattrs",
                    f"rm -r {needs.name}",
                ),
            )
        )
        lines = (*lines, "export SINGULARITYENV_PREPEND_PATH=/user-software/bin")
        prefix = f"{runtime} run -B {packed}:/user-software:image-src=/ {image}"
        steps.append(SetupStep(comment="Where the job finds them.", lines=(lines[-1],)))
    steps += _kept(needs, f"{prefix} pip freeze > {needs.lock}")
    return Made(tuple(steps), lines, prefix)


def of_conda(needs: Needs) -> Made:
    """An environment of conda, from conda-forge."""
    tool = needs.tool or "conda"
    lines = () if needs.tool else needs.environments.conda
    steps = [SetupStep(comment="conda itself.", lines=lines)] if lines else []
    create = f"CONDA_OVERRIDE_CUDA={needs.cuda} {tool} create -n {needs.name} {_specs(needs)}"
    steps.append(
        SetupStep(
            comment=f"For the driver of the compute nodes (CUDA {needs.cuda}). The build string "
            "makes conda refuse rather than install a CPU-only build.",
            lines=(create,),
        )
    )
    listed = {
        "micromamba": f"micromamba env export -n {needs.name} --explicit",
    }.get(tool, f"{tool} list -n {needs.name} --explicit --md5")
    steps += _kept(needs, f"{listed} > {needs.lock}")
    return Made(
        tuple(steps),
        conda_activation(needs.environments, needs.name, needs.tool),
        cautions=(_HIDES,),
    )


def conda_activation(environments: Environments, name: str, tool: str = "") -> tuple[str, ...]:
    """Return the lines by which a job activates an environment of conda, in any shell.

    Args:
        environments: what the site says of it.
        name: of the environment, or its directory, as a word of bash.
        tool: the user's own conda, mamba or micromamba; empty: the site's.
    """
    if not tool and environments.activate:
        return (*environments.conda, environments.activate.replace("{name}", name))
    lines = () if tool else environments.conda  # the site's would hide the user's own
    tool = tool or "conda"
    hook = "conda shell.bash hook" if tool == "conda" else f"{tool} shell hook --shell bash"
    return (*lines, f'eval "$({hook})"', f"{tool} activate {name}")


def of_venv(needs: Needs) -> Made:
    """A virtual environment with the wheels of PyPI."""
    python = f"python{needs.python}" if needs.python else "python3"
    activate = f"source {needs.path('bin/activate')}"
    steps = [SetupStep(comment="A Python.", lines=needs.environments.python)]
    steps.append(
        SetupStep(
            comment="A virtual environment.",
            lines=(
                f"{python} -m venv {needs.path()}",
                activate,
                "pip install --upgrade pip",
            ),
        )
    )
    steps.append(_wheels(needs))
    steps += _kept(needs, f"pip freeze > {needs.lock}")
    lines = (*needs.environments.python, activate)
    return Made(tuple(one for one in steps if one.lines), lines)


def of_wheelhouse(needs: Needs) -> Made:
    """A virtual environment with the site's own wheels, made again in each job where it says so."""
    python = _with_python(needs.environments.python, needs.python)
    name = _PIP[needs.framework]
    wanted = [f"{name}=={needs.version}.*" if needs.version else name, *needs.extra]
    install = f"pip install --no-index {_words(wanted)}"
    upgrade = "pip install --no-index --upgrade pip"
    steps = [
        SetupStep(comment="The site's Python.", lines=python),
        SetupStep(comment="Which wheels the site has.", lines=(f"avail_wheels {name}",)),
    ]
    if not needs.environments.in_job:
        activate = f"source {needs.path('bin/activate')}"
        made = (f"virtualenv --no-download {needs.path()}", activate, upgrade, install)
        steps.append(SetupStep(comment="A virtual environment with them.", lines=made))
        # A lock of the site's wheels does not say what they were built for; their files do.
        steps += _kept(needs, f"pip freeze --local > {needs.lock}",
                       f"--python {needs.path('bin/python')}")  # fmt: skip
        return Made(tuple(steps), (*python, activate))
    lock = needs.file(".lock.txt")  # beside environments: jobs find it wherever they begin
    steps.append(
        SetupStep(
            comment="What each job installs, tried out once in an environment that goes again.",
            lines=(
                "scratch=$(mktemp -d)",
                "trap 'rm -r \"$scratch\"' EXIT",
                'virtualenv --no-download "$scratch"',
                'source "$scratch/bin/activate"',
                upgrade,
                install,
            ),
        )
    )
    steps += _kept(needs, f"pip freeze --local > {lock}", '--python "$scratch/bin/python"')
    folder = f"{needs.environments.in_job}/env"
    lines = (
        *python,
        # A job that lacks a package ends here, not when its program comes to need it.
        "srun -N $SLURM_NNODES -n $SLURM_NNODES bash -e << 'EOF' || exit 1",
        f"virtualenv --no-download {folder}",
        f"source {folder}/bin/activate",
        upgrade,
        f"pip install --no-index -r {lock}",
        "EOF",
        f"source {folder}/bin/activate",
    )
    return Made(tuple(steps), lines)


def of_tykky(needs: Needs) -> Made:
    """Conda's packages in a container that tykky makes, with commands as if it were none."""
    specs = _spec_list(needs)
    urls = f"{needs.path('bin/python')} -c {bash_word(_URLS)}"
    steps = (
        SetupStep(comment="tykky itself.", lines=needs.environments.container),
        SetupStep(
            comment="What is to be in it.",
            lines=(
                f"cat > {needs.name}.yml << 'EOF'",
                "channels:",
                "  - conda-forge",
                "dependencies:",
                *(f'  - "{one}"' for one in specs),
                "EOF",
            ),
        ),
        SetupStep(
            comment=f"For the driver of the compute nodes (CUDA {needs.cuda}).",
            lines=(
                f"mkdir -p {needs.path()}",
                (
                    f"CONDA_OVERRIDE_CUDA={needs.cuda} conda-containerize new --mamba "
                    f"--prefix {needs.path()} {needs.name}.yml"
                ),
            ),
        ),
        *_kept(needs, f"{{ echo @EXPLICIT; {urls}; }} > {needs.lock}"),
    )
    path = f'export PATH={needs.path("bin")}:"$PATH"'
    return Made(steps, (path,), cautions=(_HIDES,))


def of_apptainer(needs: Needs) -> Made:
    """Conda's packages in a container of the user's own."""
    image = needs.file(".sif")
    maker = needs.environments.maker
    steps = (
        SetupStep(comment="What makes containers.", lines=needs.environments.container),
        SetupStep(
            comment=f"The recipe: conda-forge's packages, for the driver of the compute nodes "
            f"(CUDA {needs.cuda}).",
            lines=(
                f"cat > {needs.name}.def << 'EOF'",
                "Bootstrap: docker",
                "From: mambaorg/micromamba",
                "",
                "%post",
                f"    export CONDA_OVERRIDE_CUDA={needs.cuda}",
                f"    micromamba create -q -y -p /opt/env {_specs(needs)}",
                "    micromamba clean -q -a -y",
                "",
                "%environment",
                "    export PATH=/opt/env/bin:$PATH",
                "EOF",
            ),
        ),
        SetupStep(
            comment="The container, one file.", lines=(f"{maker} build {image} {needs.name}.def",)
        ),
        *_kept(
            needs,
            f"{maker} exec {image} micromamba env export -p /opt/env --explicit > {needs.lock}",
        ),
    )
    return Made(
        tuple(one for one in steps if one.lines),
        needs.environments.container,
        f"{maker} exec --nv {image}",
        (_HIDES,),
    )


def _kept(needs: Needs, list_packages: str, what: str = "") -> list[SetupStep]:
    """Return the steps that write down what was installed, and look at it."""
    what = what or needs.lock
    return [
        SetupStep(comment="What was installed, to install it again.", lines=(list_packages,)),
        SetupStep(
            comment="Whether it is a GPU build that the driver runs.",
            lines=(f"teho env check --cluster {needs.cluster} {what}",),
        ),
    ]


def _wheels(needs: Needs) -> SetupStep:
    """Return the step that installs a framework's wheels from PyPI, with the toolkit chosen."""
    assert needs.proposal is not None  # noqa: S101 - there are none without
    version, major = needs.version or needs.proposal.version, needs.toolkit_major
    more = [*_old_cudnn(needs, "nvidia-cudnn-cu12"), *needs.extra]
    if needs.framework == "pytorch":
        label, prefix = ("CUDA", "cu") if needs.proposal.accelerator == "cuda" else ("ROCm", "rocm")
        toolkit = needs.proposal.toolkit
        backend = prefix + (toolkit.replace(".", "") if prefix == "cu" else toolkit)
        wanted = [f"torch=={version}.*", *needs.extra]
        return SetupStep(
            comment=f"PyTorch's wheels for {label} {toolkit}; uv knows where they lie.",
            lines=(
                "pip install uv",
                f"uv pip install --torch-backend={backend} {_words(wanted)}",
            ),
        )
    framework = {
        "tensorflow": f"tensorflow[and-cuda]=={version}.*",
        "jax": f"jax[cuda{major}]=={version}.*",
        "cupy": f"cupy-cuda{major}x[ctk]=={version}.*",
    }[needs.framework]
    return SetupStep(
        comment=f"The wheels for CUDA {major}, with CUDA's own libraries.",
        lines=(f"pip install {_words([framework, *more])}",),
    )


def _specs(needs: Needs) -> str:
    return f"--override-channels -c conda-forge {_words(_spec_list(needs))}"


def _spec_list(needs: Needs) -> list[str]:
    """Return what conda is asked for: the release, and a GPU build of it by its build string."""
    assert needs.proposal is not None  # noqa: S101 - there are none without
    version, name = needs.version or needs.proposal.version, _CONDA[needs.framework]
    specs = [f"python={needs.proposal.python}"]
    # CuPy has no CPU-only build.
    specs.append(
        f"{name}={version}.*" if needs.framework == "cupy" else f"{name}={version}.*=cuda*"
    )
    specs += ["jax"] if needs.framework == "jax" else []
    if numbers(needs.cuda)[:1] > (needs.toolkit_major,):
        specs.append(f"cuda-version={needs.toolkit_major}")
    return [*specs, *_old_cudnn(needs, "cudnn"), *needs.extra]


def _old_cudnn(needs: Needs, package: str) -> list[str]:
    """Return what keeps cuDNN at the last that is for an old GPU; nothing if any is."""
    if (
        needs.framework == "cupy"
        or not needs.capability
        or cudnn_fits(_OLD_CUDNN, needs.capability)
    ):
        return []
    return [f"{package}<{_OLD_CUDNN}"]


def _of_version(lines: Sequence[str], version: str) -> tuple[str, ...]:
    """Return a module's lines with its version behind the last one's name."""
    return (*lines[:-1], f"{lines[-1]}/{version}") if version else tuple(lines)


def _with_python(lines: Sequence[str], version: str) -> tuple[str, ...]:
    """Return lines that load a Python, with its version."""
    if not version:
        return tuple(lines)
    return tuple(re.sub(r"(?<=\s)python(/\S+)?(?=\s|$)", f"python/{version}", one) for one in lines)


def _words(words: Sequence[str]) -> str:
    return " ".join(map(bash_word, words))
