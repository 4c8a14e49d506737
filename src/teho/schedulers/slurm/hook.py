"""Starts a recorder in each Slurm job, through the variable `BASH_ENV`.

sbatch passes the variable on to the job. A bash that runs a script expands it and reads the file of
this name (bash(1)). The expansion starts the recorder in the background and leaves no name, or the
name that the variable had before. So bash reads no file of Teho, and waits for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from teho.errors import InputError
from teho.model.always import Hook

__all__ = ["slurm_hook"]

_FILES = {"bash": ".bashrc", "zsh": ".zshrc"}
_LOGIN_FILES = (".bash_profile", ".bash_login", ".profile")
"""A login shell reads the first of them (bash(1))."""
# Only on a compute node, in a batch script (whose step has a special number, or none), and only
# until the recorder runs: then the link of its name leads to its folder in /proc. `$?` stays.
_START = (
    "${{SLURMD_NODENAME:+$(status=$?; {{ [[ -e /tmp/teho-always-$SLURM_JOB_ID"
    ' || ${{SLURM_STEP_ID-429496729x}} != 429496729? ]] || setsid sh -c "{start} detached &"; }}'
    " &>/dev/null || :; exit $status)}}"
)


def slurm_hook(start: str, home: Path, environment: Mapping[str, str]) -> Hook:
    """Return the lines for the file that the user's shell reads at its start.

    Raises:
        InputError: the shell is neither bash nor zsh.
    """
    shell = Path(environment.get("SHELL", "")).name
    if shell not in _FILES:
        raise InputError(
            f"your shell is {shell or 'not known'}", "bash or zsh", "`chsh` changes your shell"
        )
    folder = Path(environment.get("ZDOTDIR") or home) if shell == "zsh" else home
    file = folder / _FILES[shell]
    value = _START.format(start=start)
    line = (
        "case ${BASH_ENV-} in *teho-always*) ;; "
        f"*) export BASH_ENV='{value}'\"${{BASH_ENV-}}\" ;; esac"
    )
    return Hook(
        scheduler="Slurm",
        file=str(file),
        lines=(line,),
        is_active=value in environment.get("BASH_ENV", ""),
        problem=_not_read_at_login(home) if shell == "bash" else "",
    )


def _not_read_at_login(home: Path) -> str:
    """Say why a login shell does not read `.bashrc`; empty: it does."""
    for name in _LOGIN_FILES:
        try:
            text = (home / name).read_text(errors="replace")
        except OSError:
            continue
        if "bashrc" in text:
            return ""
        return f"a login shell does not read ~/.bashrc: add `. ~/.bashrc` to ~/{name}"
    return "a login shell does not read ~/.bashrc: write `. ~/.bashrc` into a file ~/.bash_profile"
