"""The line that `teho always` adds for Slurm, in the files of different shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from teho.errors import InputError
from teho.schedulers.slurm.hook import slurm_hook


@pytest.mark.parametrize(
    ("variables", "file"),
    [
        ({"SHELL": "/bin/bash"}, ".bashrc"),
        ({"SHELL": "/usr/bin/zsh"}, ".zshrc"),
        ({"SHELL": "zsh", "ZDOTDIR": "dots"}, "dots/.zshrc"),
    ],
)
def test_each_shell_has_its_file(tmp_path: Path, variables: dict[str, str], file: str) -> None:
    if "ZDOTDIR" in variables:
        variables["ZDOTDIR"] = str(tmp_path / variables["ZDOTDIR"])
    assert slurm_hook("/x/start", tmp_path, variables).file == str(tmp_path / file)


@pytest.mark.parametrize("shell", ["/bin/tcsh", "fish", ""])
def test_other_shells_are_refused(tmp_path: Path, shell: str) -> None:
    with pytest.raises(InputError, match="bash or zsh"):
        slurm_hook("/x/start", tmp_path, {"SHELL": shell})


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
@pytest.mark.parametrize("before", ["", "/usr/share/lmod/lmod/init/bash", "$HOME/a b'\"`"])
def test_the_variable_keeps_what_it_had(tmp_path: Path, shell: str, before: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    [line] = slurm_hook("/x/start", tmp_path, {"SHELL": "bash"}).lines
    # Set in the shell: bash would expand a value from its environment at its start.
    done = subprocess.run(
        [shell, "-c", f'export BASH_ENV="$BEFORE"\n{line}\n{line}\nprintf %s "$BASH_ENV"'],
        env={"BEFORE": before, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    value = done.stdout
    assert value.count("/x/start detached") == 1
    assert value.endswith(f"}}{before}")
    assert slurm_hook("/x/start", tmp_path, {"SHELL": "bash", "BASH_ENV": value}).is_active


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({".bash_profile": ". ~/.bashrc"}, ""),
        ({".profile": "[ -f ~/.bashrc ] && . ~/.bashrc"}, ""),
        ({".bash_profile": "umask 77", ".profile": ". ~/.bashrc"}, "add `. ~/.bashrc` to"),
        ({}, "write `. ~/.bashrc` into a file ~/.bash_profile"),
    ],
)
def test_a_login_shell_may_not_read_the_file(
    tmp_path: Path, files: dict[str, str], problem: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = slurm_hook("/x/start", tmp_path, {"SHELL": "bash"}).problem
    assert problem in found if problem else found == ""
