"""Programs that a job of a twin finds on its PATH: they write down how they were called."""

from __future__ import annotations

from pathlib import Path

import msgspec

__all__ = ["Call", "calls_of", "write_stubs"]

_NOTES = """\
#!/bin/bash
# A directory of its own for each call, which two nodes can make at once.
call=$(mktemp -d "$TWIN_CALLS/$SLURM_JOB_ID.XXXXXXXX")
printf '%s\\0' "${0##*/}" "$@" > "$call/argv"
env -0 > "$call/env"
"""
_STUBS = {
    "module": "#!/bin/bash\ntrue\n",
    "pip": "#!/bin/bash\ntrue\n",
    "singularity": '#!/bin/bash\nshift 2\nexec "$@"\n',
    "virtualenv": '#!/bin/bash\nmkdir -p "${!#}/bin"\ntouch "${!#}/bin/activate"\n',
    **dict.fromkeys(("accelerate", "deepspeed", "horovodrun", "python", "torchrun"), _NOTES),
}


class Call(msgspec.Struct, frozen=True):
    """One call of a stub."""

    argv: tuple[str, ...]
    env: dict[str, str]

    @property
    def node(self) -> str:
        """The twin's node that it ran on."""
        return self.env["SLURMD_NODENAME"]

    @property
    def options(self) -> dict[str, str]:
        """Options `--name=value` of the launcher itself, before its program."""
        words = (word[2:].partition("=") for word in self.argv if word.startswith("--"))
        return {name: value for name, _, value in words}


def write_stubs(folder: Path) -> dict[str, str]:
    """Write the stubs, and return the environment in which a job finds and uses them."""
    calls, scratch = folder / "calls", folder / "scratch"
    programs = folder / "bin"
    for each in (calls, scratch, programs):
        each.mkdir()
    for name, text in _STUBS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return {
        "PATH": f"{programs}:/usr/bin:/bin",
        "TWIN_CALLS": str(calls),
        # Sites set it in each job; modules' own start-up file would hide the stub.
        "SLURM_TMPDIR": str(scratch),
    }


def calls_of(folder: Path, job: str) -> list[Call]:
    """Return the calls that a job made."""
    return [
        Call(
            tuple(_words(call / "argv")), dict(word.split("=", 1) for word in _words(call / "env"))
        )
        for call in sorted((folder / "calls").glob(f"{job}.*"))
    ]


def _words(path: Path) -> list[str]:
    return path.read_text().split("\0")[:-1]


def _environment(path: Path) -> dict[str, str]:
    return dict(word.split("=", 1) for word in _words(path))
