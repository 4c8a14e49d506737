"""`teho doctor`: is this environment, this allocation, this binding sane?"""

from __future__ import annotations

import os
import shutil
import sys
import time
from threading import Timer
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.output import Output, output_options
from teho.errors import InputError, TehoError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["command"]

_PATIENCE_S = 2.0
_DOOMED = 3


@click.command(
    epilog="""\b
Examples:
  teho doctor
  teho doctor --self-test
  teho doctor --python ~/venv/bin/python --data /scratch/images
  srun --gpus=1 teho doctor --only cpu-only-build,driver-too-old""",
)
@click.option("--python", "python", metavar="PATH", default="",
              help="The Python of your programs; - where a container has it.  "
                   "[default: the first on PATH]")  # fmt: skip
@click.option("--data", "data", metavar="DIR", default="",
              help="Look at a sample of the files below DIR, too.")  # fmt: skip
@click.option("--cluster", metavar="NAME", default="",
              help="Judge by this cluster of the catalogue.  [default: as recognised]")  # fmt: skip
@click.option("--only", "only", metavar="ID,…", default="", help="Only these checks.")
@click.option("--self-test", is_flag=True,
              help="Multiply matrices too, and check and time them: up to 90 s.")  # fmt: skip
@click.option("--in-job", is_flag=True,
              help="At the top of a job's script: one line a problem, on stderr.")  # fmt: skip
@output_options()
def command(
    python: str,
    data: str,
    cluster: str,
    only: str,
    *,
    self_test: bool,
    in_job: bool,
    output: Output,
) -> None:
    """Find what can make a job fail or slow: builds, drivers, binding, limits, file systems.

    Works on a login node, in a job and on a laptop, without root. Each driver, file system and
    framework is asked in a process of its own, with a time limit of 2 s to 30 s.

    Exit code: 1 if a warning or a critical problem was found, or the self-test failed; else 2 if a
    check that can find critical problems could not judge, the self-test could not run, or an option
    is wrong; else 0. Remarks do not change the exit code. With --in-job: 3 if the job cannot do
    what it was started for, 2 if an option is wrong, else 0.
    """
    ids = [word for part in only.split(",") if (word := part.strip())]
    if in_job:
        if self_test or output.form != "text":
            raise InputError(
                f"--in-job with --self-test or --format {output.form}", "one without the other"
            )
        raise click.exceptions.Exit(_in_job(ids, python, data, cluster))
    # os.path.expanduser: no error where `~name` is nobody's home.
    if python not in {"", "-"} and shutil.which(os.path.expanduser(python)) is None:  # noqa: PTH111
        raise InputError(f"--python {python}: no such program", "the path of a Python")
    from teho.doctor.collect import collect_snapshot
    from teho.doctor.examine import chosen, examine, exit_code

    checks = chosen(ids)

    hint = Timer(_PATIENCE_S, say, ["asking drivers, file systems and frameworks…"])
    hint.daemon = True
    if sys.stderr.isatty():
        hint.start()
    began_s = time.monotonic()
    snapshot = collect_snapshot(os.environ, python=python, data=data, cluster=cluster)
    wall_s = time.monotonic() - began_s
    hint.cancel()
    test = None
    if self_test:
        from teho.doctor.self_test import self_test as run_self_test

        if sys.stderr.isatty():
            say("multiplying matrices…")
        test = run_self_test(snapshot, os.environ)
    examination = examine(snapshot, checks, wall_s, test)
    from teho.show.build.doctor import doctor_document

    output.show(doctor_document(examination), examination)
    if code := exit_code(examination):
        raise click.exceptions.Exit(code)


def _in_job(ids: Sequence[str], python: str, data: str, cluster: str) -> int:
    """Say what is wrong; return the exit code, 3 where the job is doomed."""
    try:
        from teho.doctor.collect import collect_snapshot
        from teho.doctor.examine import chosen, doomed, examine
        from teho.show.build.doctor import problem_lines

        checks = chosen(ids)
        began_s = time.monotonic()
        snapshot = collect_snapshot(os.environ, python=python, data=data, cluster=cluster)
        examination = examine(snapshot, checks, time.monotonic() - began_s)
        for line in problem_lines(examination):
            say(line)
    except TehoError:
        raise
    except Exception as error:  # noqa: BLE001 - it must not end somebody's job
        say(f"doctor could not look: {error!r}")
        return 0
    # Python itself ends with 1 where it cannot so much as start Teho: that must end no job.
    return _DOOMED if doomed(examination) else 0
