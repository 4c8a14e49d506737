"""This section shows how much time `teho always on` adds to a job.

The measured job is a bash script that only runs `true`. The script has the environment variables of
a Slurm job. The first row is about the start of this script: bash then also starts the real
recorder. For the second row, the program that starts the recorder does not end. The third row is
about a bash that the job starts later, while the recorder runs. The fourth row is about the program
that a site can use as Slurm's `TaskProlog`. The fifth row is about a script with the environment
variables of a Grid Engine job, in a login shell. Each figure is the additional time, compared with
the same script without `teho always`. The budget is 50 ms per task.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from common import SCRIPTS, Figures, Row, environment, interleave, measure_process

from teho.schedulers.command import Completed
from teho.schedulers.grid_engine.hook import grid_engine_hooks

_BUDGET_MS = 50
_JOB_IDS = itertools.count(os.getpid() * 1000)


def measure(*, quick: bool) -> list[Row]:
    rounds = 1 if quick else 21
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        folder = Path(name)
        script = folder / "script.sh"
        script.write_text("true\n")
        start, hook = _switch_on(folder)
        job = environment(folder) | {"SLURMD_NODENAME": "n1", "SLURM_JOB_NODELIST": "n1"}
        firsts = {
            "with": partial(_first, script, job | {"BASH_ENV": hook}),
            "without": partial(_first, script, job),
        }
        prologs = {"with": partial(_first, start, job), "without": partial(_first, "true", job)}
        hanging = folder / "hanging"
        hanging.write_text("#!/bin/sh\nexec sleep 30\n")
        hanging.chmod(0o755)
        broken = job | {"BASH_ENV": hook.replace(str(start), str(hanging))}
        hangs = {"with": partial(_first, script, broken), "without": partial(_first, script, job)}
        first, prolog = interleave(firsts, rounds), interleave(prologs, rounds)
        hang = interleave(hangs, rounds)
        logins = {name: partial(_login, folder, start, name) for name in ("with", "without")}
        login = interleave(logins, rounds)
        job["SLURM_JOB_ID"] = str(next(_JOB_IDS))
        with subprocess.Popen(
            ["bash", "-c", "read -r _"], env=job | {"BASH_ENV": hook}, stdin=subprocess.PIPE
        ) as running:
            _await_mark(job["SLURM_JOB_ID"], present=True)
            laters = {
                "with": partial(_wall_ms, script, job | {"BASH_ENV": hook}),
                "without": partial(_wall_ms, script, job),
            }
            later = interleave(laters, rounds * 10)
            running.communicate()
        _await_mark(job["SLURM_JOB_ID"], present=False)
    return [
        Row(what=what, unit="ms", ours=_difference(times), budget=_BUDGET_MS)
        for what, times in (
            ("start of a job's script, which starts the recorder: longer by", first),
            ("start of a job's script, if Teho's program hangs: longer by", hang),
            ("a later bash of the job: longer by", later),
            ("the program for `TaskProlog`: longer than `true` by", prolog),
            ("start of a Grid Engine job's script in a login shell: longer by", login),
        )
    ]


def _switch_on(folder: Path) -> tuple[Path, str]:
    """Switch it on as a user does; return the program, and the value of `BASH_ENV`."""
    env = environment(folder) | {"SHELL": "/bin/bash"}
    tools = folder / "bin"
    tools.mkdir()
    (tools / "scontrol").symlink_to("/bin/true")
    (folder / ".profile").write_text(". ~/.bashrc\n")
    env["PATH"] = f"{tools}:{env['PATH']}"
    subprocess.run([SCRIPTS / "teho", "always", "on"], env=env, check=True, stdout=sys.stderr)
    shown = subprocess.run(
        ["bash", "-c", '. ~/.bashrc; printf %s "$BASH_ENV"'],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return folder / "config" / "teho" / "always" / "start", shown.stdout


def _first(program: str | Path, env: Mapping[str, str]) -> float:
    """Start a job, and return its time in ms. Then wait for the end of its recorder."""
    job = str(next(_JOB_IDS))
    wall_ms = _wall_ms(program, {**env, "SLURM_JOB_ID": job})
    time.sleep(0.2)
    _await_mark(job, present=False)
    return wall_ms


def _login(folder: Path, start: Path, name: str) -> float:
    """Start a job of Grid Engine, and return its time in ms. Then wait for its recorder."""
    home, number = folder / f"login-{name}", str(next(_JOB_IDS))
    home.mkdir(exist_ok=True)
    lines = grid_engine_hooks(str(start), home, _queues)[0].lines if name == "with" else ()
    (home / ".profile").write_text("".join(f"{line}\n" for line in lines))
    job = {"JOB_ID": number, "SGE_TASK_ID": "undefined", "SGE_ROOT": "/", "HOME": str(home)}
    env = environment(folder) | job | {"SGE_JOB_SPOOL_DIR": str(folder)}
    # `exec -a` gives the shell the name with which Grid Engine starts a login shell.
    argv = ["sh", "-c", 'exec bash -c \'exec -a -bash bash "$0"\' "$0"', folder / "script.sh"]
    wall_ms = measure_process(argv, env).wall_s * 1000
    time.sleep(0.2)
    _await_mark(f"{number}.undefined", present=False)
    return wall_ms


def _queues(argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
    """Answer as a Grid Engine with one queue that starts login shells."""
    del timeout_s, repeat
    answers = {"-sconf": "login_shells bash", "-sql": "q"}
    text = answers.get(argv[1], "shell_start_mode posix_compliant")
    return Completed(tuple(argv), 0, f"{text}\n", "")


def _wall_ms(program: str | Path, env: Mapping[str, str]) -> float:
    is_script = str(program).endswith(".sh")
    argv = ["bash", program] if is_script else [program]
    return measure_process(argv, env).wall_s * 1000


def _await_mark(job: str, *, present: bool) -> None:
    mark = Path(f"/tmp/teho-always-{job}")
    end_s = time.monotonic() + 30
    while mark.is_symlink() is not present:
        if time.monotonic() > end_s:
            raise RuntimeError(f"{mark} is {'missing' if present else 'there'} after 30 s")
        time.sleep(0.02)


def _difference(times: Mapping[str, list[float]]) -> Figures:
    return Figures.of(
        *(ours - theirs for ours, theirs in zip(times["with"], times["without"], strict=True))
    )
