"""Download the packages that a machine without a network needs, and print their size.

python benchmarks/gpu/wheels.py                       for Python 3.12 on x86-64
python benchmarks/gpu/wheels.py --python 3.11 --has has.txt
python benchmarks/gpu/wheels.py --here .frameworks/bin/python    for a rehearsal on this machine

`has.txt` is the output of `python3 -m pip list --format freeze` on that machine. If a package in
this file has a version that works with Teho, the package is not downloaded. The versions are from
requirements/*.lock.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE)]

from install import wheels_for  # noqa: E402 - the path above leads to it

ROOT = _HERE.parents[1]
BUILD = ROOT / "build" / "gpu"
MOST_MIB = 64.0
"""The largest size of the repository and the wheels together."""
_SPARE_MIB = 1.0
"""The part of this size for files that are added on the other machine."""
_PEERS = ("nvitop", "codecarbon", "zeus")
"""Tools that are compared with Teho. If one is missing, its row says so."""
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Download wheels for a machine without a network.")
    parser.add_argument("--python", default="3.12", metavar="X.Y", help="version on that machine")
    parser.add_argument("--machine", default="x86_64", choices=["x86_64", "aarch64"])
    parser.add_argument("--has", type=Path, metavar="FILE", help="packages installed there")
    parser.add_argument(
        "--here", metavar="PYTHON", help="for PYTHON on this machine (a rehearsal), without peers"
    )
    options = parser.parse_args(arguments)
    if options.here:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        told = subprocess.run(
            [options.here, "-c", code], capture_output=True, text=True, check=True
        )
        options.python, options.machine = told.stdout.strip(), platform.machine()
        if any(wheels_for(options.python, BUILD).glob("*.whl")):
            return 0
    has = has_of(options.has.read_text(encoding="utf-8")) if options.has else {}
    folder = wheels_for(options.python, BUILD)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        constraints = Path(name) / "versions.txt"
        constraints.write_text("\n".join(_locked()) + "\n", encoding="utf-8")
        groups = {"Teho": _needed(options.python)}
        groups |= {} if options.here else {peer: [peer] for peer in _PEERS}
        for group, names in groups.items():
            got = Path(name) / group
            try:
                _download(names, options.python, options.machine, constraints, got)
            except subprocess.CalledProcessError as error:
                why = (error.stderr.strip().splitlines() or ["pip printed no error"])[-1]
                if group == "Teho":
                    sys.exit(f"The packages that Teho needs could not be downloaded: {why}")
                print(f"{group} is left out: {why}")
                continue
            new = [path for path in got.glob("*.whl") if not (folder / path.name).exists()]
            new = [path for path in new if not is_there(path.name, has)]
            if group != "Teho" and carried_mib(folder, new) > MOST_MIB - _SPARE_MIB:
                print(f"{group} is left out, to stay below {MOST_MIB:g} MiB; next: use --has FILE")
                continue
            for path in new:
                shutil.copy(path, folder)
    return tell_carried(folder)


def carried_mib(wheels: Path, more: Iterable[Path] = ()) -> float:
    """Return the size of the repository (without ignored files) and of the wheels [MiB]."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout.split(b"\0")  # fmt: skip
    files = [ROOT / name.decode() for name in names if name]
    files += [*wheels.glob("*.whl"), *more]
    return sum(path.lstat().st_size for path in files if path.is_file()) / 2**20


def tell_carried(wheels: Path) -> int:
    """Print the size of wheels and repository; return 1 if it is too large."""
    sizes = {path.name: path.stat().st_size / 2**20 for path in wheels.glob("*.whl")}
    for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:3]:
        print(f"{size:6.1f} MiB  {name}")
    total = carried_mib(wheels)
    print(f"{sum(sizes.values()):6.1f} MiB  {len(sizes)} wheels in {wheels.relative_to(ROOT)}")
    print(f"{total:6.1f} MiB  wheels and repository together, of at most {MOST_MIB:g} MiB")
    return int(total > MOST_MIB)


def has_of(text: str) -> dict[str, str]:
    """Return the versions by name in the output of `pip list --format freeze`."""
    pairs = (line.strip().split("==", 1) for line in text.splitlines() if "==" in line)
    return {_plain(name): version for name, version in pairs}


def distribution(wheel: str) -> tuple[str, str]:
    """Return name and version of a wheel, by its file's name."""
    name, version = wheel.split("-")[:2]
    return _plain(name), version


def is_there(wheel: str, has: dict[str, str]) -> bool:
    """Return whether a machine has the package of a wheel in a version that works with Teho.

    If Teho needs no particular version, every version works.
    """
    name, _ = distribution(wheel)
    least = next((least for own, least in _bounds() if own == name), "")
    return name in has and _number(has[name]) >= _number(least)


def _bounds() -> list[tuple[str, str]]:
    """Return the name and the lowest version of each package that Teho needs."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = text.partition("\ndependencies = [")[2].partition("]")[0]
    found = re.findall(r'"([\w-]+)>=([\d.]+)(?:"|;)', block)
    return [(_plain(name), version) for name, version in found]


def _needed(python: str) -> list[str]:
    """Return the packages that Teho needs; tomli only if the standard library has no TOML."""
    has_toml = _number(python) >= (3, 11)
    return [f"{name}>={least}" for name, least in _bounds() if name != "tomli" or not has_toml]


def _locked() -> Iterable[str]:
    """Yield the versions of the lock files, once for each name and marker."""
    lines: dict[str, None] = {}
    for name in ("dev", "bench"):
        text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
        for line in text.splitlines():
            if "==" in line and not line.startswith((" ", "#")):
                lines.setdefault(line.removesuffix("\\").strip())
    return lines


def _download(
    names: Iterable[str], python: str, machine: str, constraints: Path, folder: Path
) -> None:
    platforms = [f"--platform={platform}_{machine}" for platform in _PLATFORMS]
    argv = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
    argv += ["--only-binary=:all:", f"--python-version={python}", *platforms]
    argv += ["--implementation=cp", "-c", str(constraints), "-d", str(folder), *names]
    subprocess.run(argv, check=True, capture_output=True, text=True)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


if __name__ == "__main__":
    sys.exit(main())
