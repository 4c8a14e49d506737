"""Problems of an environment, found before a job waits in a queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from teho.model.document import VerdictSeverity
from teho.model.software import Build, Checked, Driver, Package, Problem
from teho.patterns import lazy_pattern
from teho.software.builds import builds_of, cudnn_of, nccl_of, runtime_of
from teho.software.choose import TITLES, driver_runs
from teho.software.drivers import cudnn_fits, lowest_driver, newest_cuda, numbers
from teho.software.releases import supports
from teho.units import counted

__all__ = ["Target", "check", "verdict_of"]

_PLUGIN = lazy_pattern(r"jax-((?:cuda|rocm)\d+)-plugin")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The node for the environment, as far as it is known."""

    driver: Driver | None = None
    vendor: str = ""
    """`nvidia` or `amd`; empty: not known."""
    gpu: str = ""
    """Product name."""
    capability: str = ""
    """NVIDIA's compute capability; empty: not known."""
    arch: str = "x86_64"
    """Architecture of the node."""
    cluster: str = ""
    """Name in the catalogue, for the next step."""
    others: tuple[str, ...] = ()
    """Other types of GPU that the cluster has."""


def check(
    packages: Sequence[Package],
    *,
    source: str,
    form: str,
    target: Target,
    facts: Mapping[str, str] | None = None,
    python: str = "",
) -> Checked:
    """Find the frameworks' builds, and compare them with a driver and a GPU.

    Args:
        packages: all packages of an environment.
        source: the file, or the interpreter.
        form: the form of the list, such as `conda list`.
        target: the node for the environment.
        facts: facts from the frameworks' files; see `builds_of`.
        python: version of Python; empty: taken from the packages.
    """
    builds = builds_of(packages, facts)
    installed = _Installed(packages, builds, runtime_of(packages), cudnn_of(packages), target)
    return Checked(
        source=source,
        form=form,
        python=python or _version_of(packages, "python"),
        builds=tuple(builds),
        cuda=installed.cuda,
        cudnn=installed.cudnn,
        nccl=nccl_of(packages),
        driver=target.driver,
        gpu=f"{target.gpu} (compute capability {target.capability})"
        if target.capability
        else target.gpu,
        problems=tuple(_problems(installed)),
        not_checked=tuple(_not_checked(installed)),
    )


class _Installed(msgspec.Struct, frozen=True):
    packages: Sequence[Package]
    builds: Sequence[Build]
    cuda: str
    cudnn: str
    target: Target


def _problems(installed: _Installed) -> Iterator[Problem]:
    if not installed.builds:
        yield Problem(
            kind="no_framework",
            severity="critical",
            sentence=f"These packages include none of {', '.join(TITLES.values())}.",
            evidence=counted(len(installed.packages), "package"),
            action=_plan(installed.target, "pytorch"),
        )
    for build in installed.builds:
        yield from _of_kind(build, installed)
        if build.kind == "cuda":
            yield from _of_driver(build, installed)
            yield from _of_capability(build, installed)
    yield from _of_cudnn(installed)
    yield from _of_plugins(installed)
    yield from _twice(installed)


def _of_kind(build: Build, installed: _Installed) -> Iterator[Problem]:
    title, target = TITLES[build.framework], installed.target
    if build.kind == "cpu":
        others = {one.framework for one in installed.builds if one.kind not in {"cpu", "unknown"}}
        if build.framework not in others:
            yield Problem(
                kind="cpu_only_build",
                # In addition to a GPU build, it may be used only for tools such as data loading.
                severity="warning" if others else "critical",
                sentence=f"{title} is a CPU-only build: it cannot use a GPU.",
                evidence=f"{build.package} {build.version}: {build.evidence}",
                action=_gpu_build(build, installed),
            )
    right = {"amd": "rocm", "nvidia": "cuda"}.get(target.vendor)
    made_for = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "Intel's GPUs"}.get(build.kind)
    if right and made_for and build.kind != right:
        yield Problem(
            kind="wrong_vendor",
            severity="critical",
            sentence=f"{title} is built for {made_for}, but the GPU, {target.gpu}, is "
            f"from {target.vendor.upper()}.",
            evidence=f"{build.package} {build.version}: {build.evidence}",
            action=_plan(target, build.framework),
        )
    # PyPI's TensorFlow has GPU builds only for NVIDIA's GPUs on x86_64 (`frameworks.toml`).
    may_use_cuda = target.vendor != "amd" and target.arch == "x86_64"
    is_pips = build.package == "tensorflow" and _by_pip(build, installed.packages)
    if is_pips and may_use_cuda and not installed.cuda:
        yield Problem(
            kind="no_cuda_libraries",
            severity="warning",
            sentence="TensorFlow has no CUDA libraries: it finds a GPU only if modules provide "
            "CUDA and cuDNN.",
            evidence="the packages include neither nvidia-cuda-runtime nor nvidia-cudnn",
            action=f"`pip install 'tensorflow[and-cuda]=={build.version.partition('+')[0]}'`",
        )


def _of_driver(build: Build, installed: _Installed) -> Iterator[Problem]:
    driver = installed.target.driver
    toolkit = installed.cuda or build.toolkit
    if driver is None or driver_runs(driver, toolkit) is not False:
        return
    least = lowest_driver(toolkit) or ()
    has = driver.version or f"one for CUDA {driver.cuda}"
    newest = driver.cuda or (newest_cuda(driver.version) or "")
    yield Problem(
        kind="driver_too_old",
        severity="critical",
        sentence=f"The driver of {driver.where} ({has}) is too old for CUDA {toolkit}, which "
        f"{TITLES[build.framework]} uses.",
        evidence=(
            f"CUDA {toolkit} needs driver {'.'.join(map(str, least))} or newer; this driver "
            + (f"supports CUDA {newest}" if newest else "is too old for every CUDA in Teho's table")
        ),
        action=_plan(installed.target, build.framework),
    )


def _of_capability(build: Build, installed: _Installed) -> Iterator[Problem]:
    target = installed.target
    if _has_code(build, installed) is False:
        yield Problem(
            kind="gpu_not_supported",
            severity="critical",
            sentence=f"This build of {TITLES[build.framework]} has no code for {target.gpu}.",
            evidence=f"{build.package} {build.version} with CUDA {build.toolkit}; compute "
            f"capability {target.capability}",
            action=_plan(target, build.framework),
        )


def _has_code(build: Build, installed: _Installed) -> bool | None:
    """Return whether a build has code for the GPU; None: not known, or not documented."""
    target = installed.target
    if not target.capability or not build.toolkit:
        return None
    channel = "pip" if _by_pip(build, installed.packages) else "conda"
    return supports(
        target.capability, build.framework, build.version, build.toolkit, channel, target.arch
    )


def _of_cudnn(installed: _Installed) -> Iterator[Problem]:
    target = installed.target
    if installed.cudnn and target.capability and not cudnn_fits(installed.cudnn, target.capability):
        yield Problem(
            kind="cudnn_not_for_gpu",
            severity="critical",
            sentence=f"cuDNN {installed.cudnn} no longer supports {target.gpu}: convolutions fail.",
            evidence=f"compute capability {target.capability}; cuDNN 9.11 and newer need 7.5 or "
            "higher",
            action="install `cudnn<9.11` (conda) or `nvidia-cudnn-cu12<9.11` (pip)",
        )


def _of_plugins(installed: _Installed) -> Iterator[Problem]:
    """Yield plugins of JAX from another release than jaxlib. JAX does not load them."""
    jaxlib = _version_of(installed.packages, "jaxlib")
    for one in installed.packages:
        found = _PLUGIN.fullmatch(one.name)
        if found and jaxlib and numbers(one.version)[:2] != numbers(jaxlib)[:2]:
            yield Problem(
                kind="plugin_mismatch",
                severity="critical",
                sentence="JAX's GPU plugin and jaxlib are of different releases: JAX uses only "
                "the CPU.",
                evidence=f"{one.name} {one.version}, jaxlib {jaxlib}",
                action=f"`pip install 'jax[{found.group(1)}]=={jaxlib}'`",
            )


def _twice(installed: _Installed) -> Iterator[Problem]:
    """Yield frameworks that are installed twice. It is not certain which one is imported."""
    for framework, title in TITLES.items():
        names = sorted(
            {
                f"{one.package} {one.version}"
                for one in installed.builds
                if one.framework == framework
            }
        )
        if len(names) > 1:
            yield Problem(
                kind="installed_twice",
                severity="warning",
                sentence=f"{title} is installed {len(names)} times: it is not certain which "
                "installation is imported.",
                evidence=", ".join(names),
                action="create the environment again, with only one of these packages",
            )


def _not_checked(installed: _Installed) -> Iterator[str]:
    target = installed.target
    cuda = [one for one in installed.builds if one.kind == "cuda"]
    if cuda and target.driver is None:
        yield (
            f"Driver: the version on {target.cluster or 'the compute nodes'} is not known. Run "
            "this command on a compute node, or add `--driver VERSION`: nvidia-smi shows the "
            "version there."
        )
    for build in cuda:
        toolkit = installed.cuda or build.toolkit
        if target.driver is not None and driver_runs(target.driver, toolkit) is None:
            what = f"the lowest version for CUDA {toolkit}" if toolkit else "the build's CUDA"
            yield f"Driver: {what} is not known ({TITLES[build.framework]} {build.version})."
    if cuda and not target.gpu:
        yield "GPU: the GPU model is not known. Name the cluster with `--cluster NAME`."
    if installed.builds and target.others:
        yield (
            f"GPU: the check is for {target.gpu}. {target.cluster} also has "
            f"{', '.join(target.others)}: `--gpu-type` checks for another type."
        )
    for build in installed.builds:
        title = TITLES[build.framework]
        if build.kind == "unknown":
            yield (
                f"{title}: the version number {build.version} of {build.package} does not say for "
                "which CUDA or ROCm version it is built. `teho env check --python PATH` reads the "
                "CUDA or ROCm version from the installed files."
            )
        elif build.kind == "cuda" and target.capability and _has_code(build, installed) is None:
            yield f"{title}: Teho does not know for which GPUs {build.version} has code."


def _gpu_build(build: Build, installed: _Installed) -> str:
    """Return the command that replaces a CPU build by a GPU build."""
    target = installed.target
    if target.cluster:
        return _plan(target, build.framework)
    if not _by_pip(build, installed.packages):
        return (
            f"run `CONDA_OVERRIDE_CUDA=VERSION conda install '{build.package}=*=cuda*'`, with a "
            "CUDA version that the driver of the compute nodes supports; `teho env plan` finds "
            "this version"
        )
    return _plan(target, build.framework)


def _plan(target: Target, framework: str) -> str:
    cluster = target.cluster or "NAME"
    return f"`teho env plan --cluster {cluster} --framework {framework or 'pytorch'}`"


def _by_pip(build: Build, packages: Iterable[Package]) -> bool:
    return any(one.name == build.package and one.origin == "pip" for one in packages)


def _version_of(packages: Iterable[Package], name: str) -> str:
    return next((one.version for one in packages if one.name == name), "")


def verdict_of(checked: Checked) -> tuple[VerdictSeverity, str]:
    """Return the severity and a sentence: which builds use the GPU."""
    critical = [one for one in checked.problems if one.severity == "critical"]
    if critical:
        more = len(critical) - 1
        also = f" {counted(more, 'more problem')} below." if more else ""
        return "critical", critical[0].sentence + also
    groups = {
        what: list(dict.fromkeys(TITLES[b.framework] for b in checked.builds if b.kind in kinds))
        for what, kinds in (
            ("for the GPU", ("cuda", "rocm")), ("for Intel's GPUs", ("xpu",)),
            ("CPU-only", ("cpu",)), ("not known", ("unknown",)),
        )
    }  # fmt: skip
    problems = "; ".join(f"{', '.join(names)}: {what}" for what, names in groups.items() if names)
    if groups["not known"]:
        return "unknown", f"{problems}."
    is_known = not any(line.startswith("Driver:") for line in checked.not_checked)
    only_cuda = [one.kind for one in checked.builds] == ["cuda"]
    runs = ", and the driver runs it" if only_cuda and is_known else ""
    return ("warning", f"{problems}.") if checked.problems else ("good", f"{problems}{runs}.")
