"""`teho doctor`: what can make a job fail or slow on this machine."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.declare import flag, option, plain_command
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow
from teho.errors import InputError, TehoError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from teho.doctor.snapshot import Snapshot
    from teho.model.doctor import Examination

__all__ = ["command"]

_DOOMED = 3


@plain_command("""\
  teho doctor
  teho doctor --self-test
  teho doctor --python ~/venv/bin/python --data /scratch/images
  srun --gpus=1 teho doctor --only cpu-only-build,driver-too-old""")
@option("--python PATH", "Check the Python that your programs use. If this Python is in a "
                         "container, give '-' instead of a path.",
        unset="the first Python on PATH", default="")  # fmt: skip
@option("--data DIR", "Also check a sample of the files in DIR.", unset="no files", default="")
@option("--cluster NAME", "Use the limits of this cluster.", unset="this machine's cluster",
        default="")  # fmt: skip
@option("--only ID,…", "Run only these checks.", unset="all", default="")
@flag("--self-test", "Also multiply matrices on the first GPU or the CPU, for up to 90 s, and "
                     "check the results.")  # fmt: skip
@flag("--in-job", "Print one line per problem to stderr. Use this option in a job script.")
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
    """Find what can make a job fail or run slowly: builds, drivers, binding, limits, file systems.

    The command works on a login node, in a job and on a laptop, without root. A separate process
    asks each driver, file system and framework, with a time limit of 2 s to 30 s.

    Exit code: 1 if there is a warning, a critical problem or a failed self-test. Otherwise 2 if an
    option is wrong, or if a critical check or the self-test could not be done. Otherwise 0, even if
    there are remarks. With --in-job: 3 if the job cannot work, 2 if an option is wrong, otherwise
    0.

    Reads: the environment, the drivers, the Python of --python, a sample of the files in --data.

    Writes: only the -o file.

    Network: connects only to the proxy that the environment names.
    """
    ids = [word for part in only.split(",") if (word := part.strip())]
    if in_job:
        if self_test or output.form != "text":
            raise InputError(
                "--in-job cannot be used together with "
                f"{'--self-test' if self_test else '--format'}",
                "one of them",
            )
        raise click.exceptions.Exit(_in_job(ids, python, data, cluster))
    # os.path.expanduser: no error if no user has the name after `~`.
    if python not in {"", "-"} and shutil.which(os.path.expanduser(python)) is None:  # noqa: PTH111
        raise InputError(f"--python {python}: no such program", "the path of a Python")
    from teho.doctor.examine import exit_code

    with hint_if_slow("asking drivers, file systems and frameworks…"):
        snapshot, examination = _examined(ids, python, data, cluster)
    if self_test:
        import msgspec

        from teho.doctor.self_test import self_test as run_self_test

        if sys.stderr.isatty():
            say("multiplying matrices…")
        test = run_self_test(snapshot, os.environ)
        examination = msgspec.structs.replace(examination, self_test=test)
    from teho.show.build.doctor import doctor_document

    output.show(doctor_document(examination), examination)
    if code := exit_code(examination):
        raise click.exceptions.Exit(code)


def _examined(
    ids: Sequence[str], python: str, data: str, cluster: str
) -> tuple[Snapshot, Examination]:
    """Return the facts about this machine, and what the checks say."""
    from teho.doctor.collect import collect_snapshot
    from teho.doctor.examine import chosen, examine

    checks = chosen(ids)
    began_s = time.monotonic()
    snapshot = collect_snapshot(os.environ, python=python, data=data, cluster=cluster)
    return snapshot, examine(snapshot, checks, time.monotonic() - began_s)


def _in_job(ids: Sequence[str], python: str, data: str, cluster: str) -> int:
    """Print the problems; return the exit code, which is 3 if the job cannot work."""
    try:
        from teho.doctor.examine import doomed
        from teho.show.build.doctor import problem_lines

        _, examination = _examined(ids, python, data, cluster)
        for line in problem_lines(examination):
            say(line)
    except TehoError:
        raise
    except Exception as error:  # noqa: BLE001 - an error of Teho must not end a job
        say(f"doctor could not check this job: {error!r}")
        return 0
    # 1 is the exit code of a Python that cannot start Teho, which must not end a job.
    return _DOOMED if doomed(examination) else 0
