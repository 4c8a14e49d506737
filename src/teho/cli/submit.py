"""`teho submit`: plan, script, submit, follow."""

from __future__ import annotations

import os
import re
import shlex
import socket
import sys
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from teho.cli import say
from teho.cli.live import live_of, unused_variables
from teho.cli.own_path import own_path
from teho.cli.request import (
    check_gpu_type,
    read_request,
    read_script_options,
    request_options,
    script_options,
    with_environment,
)
from teho.clusters.catalogue import load_catalogue, load_cluster
from teho.clusters.current import current_cluster
from teho.config.settings import load_settings
from teho.errors import InputError, MissingCommandError, NotSubmittedError, RefusedError
from teho.model.cluster import Cluster
from teho.model.job import JobState, Submission
from teho.model.plan import Option
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.registry import scheduler_of
from teho.schedulers.script.options import ScriptOptions
from teho.schedulers.script.write import Script, write_script
from teho.store.submissions import find_submission, forget, keep, new_directory

__all__ = ["command"]


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  teho submit --gpus 1 --time 2h --account project_2001234 -- python train.py
  teho submit --gpus 4 --launcher torchrun --record --follow -- train.py --epochs 90
  teho submit --gpus 1 --array 1-20%4 -- bash -c 'python fold.py $SLURM_ARRAY_TASK_ID'
  teho submit --gpus 1 --time 36h --signal 10min --requeue -- python train.py --resume
  teho submit --cluster mahti --local --follow -- python train.py""",
)
@request_options
@click.option("--cluster", metavar="NAME", help="Whose job it is.  [default: where this runs]")
@script_options
@click.option("-f", "--follow", is_flag=True, help="Follow it to its end: state, log, cost.")
@click.option("--local", is_flag=True,
              help="Run the same plan as processes on this machine.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the script; submit nothing.")
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    cluster: str | None,
    follow: bool,
    local: bool,
    dry_run: bool,
    argv: tuple[str, ...],
    **given: Any,
) -> None:
    """Plan COMMAND's job, write its script, and submit it: the cheapest way that fits.

    Prints the job's number; with --follow instead its log, then what it used and cost.
    Exit code: 0 submitted, 1 nothing fits; with --follow that of the job.
    """
    request = read_request(given, argv)
    if local and given["env"]:
        raise InputError(
            "--env together with --local",
            "one of them",
            "activate it before: a local job has the environment of this shell",
        )
    settings = load_settings()
    given["after"] = tuple(_number(settings.home_directory, one) for one in given["after"])
    wishes = msgspec.structs.replace(read_script_options(given), teho=own_path())
    known = _this_cluster(cluster, elsewhere=local or dry_run)
    wishes = with_environment(wishes, given["env"], known)
    home = None if local or dry_run else settings.home_directory
    option = _cheapest(request, known, home, even_if_retired=given["even_if_retired"])
    if local:
        option = msgspec.structs.replace(option, scheduler="local")
    else:
        _check_place(known, option)
        _check_log(wishes.log)
    script = write_script(option, known, wishes)
    for advice in option.advice:
        if advice.kind != "account_missing" or not local:
            say(f"{advice.sentence} · {advice.source}")
    for remark in script.remarks:
        say(remark)
    if not local and (unused := unused_variables(option.scheduler)):
        say(unused)
    if dry_run:
        click.echo(script.text.encode("utf-8", "surrogateescape"), nl=False)
        return
    if wishes.after:
        _check_after(option, wishes, settings.home_directory)
    submission = _submit(option, script, wishes, settings.home_directory)
    from teho.cli.jobs import follow_to_end
    from teho.show.build.plan_words import option_sentence

    number = submission.number
    where = "this machine, as planned for " if local else ""
    each = " for each task" if wishes.array else ""
    say(f"submitted job {number} to {where}{known.title}, {option_sentence(option)}{each}")
    if follow:
        raise click.exceptions.Exit(follow_to_end(submission, settings))
    click.echo(number)
    say(f"`teho status {number} --follow` follows it, `teho cancel {number}` ends it")


def _this_cluster(name: str | None, *, elsewhere: bool) -> Cluster:
    """Return the cluster of that name, or the one that this machine belongs to.

    Args:
        name: as the user gave it.
        elsewhere: whether it may be another than this machine's.
    """
    known = load_catalogue().values() if name is None or not elsewhere else ()
    # The full name is asked of the network, and may be another one altogether.
    found = current_cluster(os.environ, os.uname().nodename, known) or current_cluster(
        os.environ, socket.getfqdn(), known
    )
    if name is not None:
        cluster = load_cluster(name)
        if found is not None and found.name != name and not elsewhere:
            raise InputError(
                f"--cluster {name}, and this machine belongs to {found.title}",
                next_step=f"log in to {cluster.title}, or `--local` or `--dry-run` here",
            )
        return cluster
    if found is None:
        raise InputError(
            f"this machine, {os.uname().nodename}, belongs to no cluster that Teho knows",
            "a login node of one, or `--cluster NAME`",
            "`teho clusters` lists them; `teho clusters discover` writes a new one",
        )
    return found


def _cheapest(
    request: Request, cluster: Cluster, home: Path | None, *, even_if_retired: bool
) -> Option:
    """Return the first option that the scheduler takes; if nothing fits, say why and end.

    Args:
        request: what the program needs.
        cluster: where.
        home: where submissions are kept. None: nothing is submitted, and the scheduler not asked.
        even_if_retired: plan for a retired cluster too.
    """
    live = live_of(cluster) if home else {}
    found = answer(request, [cluster], even_if_retired=even_if_retired, live=live)
    if home and found.options:
        from teho.schedulers.registry import backend_for
        from teho.schedulers.waiting import as_the_scheduler_says

        found = as_the_scheduler_says(found, cluster, backend_for(cluster.scheduler, home))
    if found.options:
        return found.options[0]
    if request.gpu_type is not None:
        check_gpu_type(request.gpu_type)
    from teho.cli.output import Output
    from teho.show.build.plan import plan_document

    clusters = {cluster.name: cluster}
    Output("text", None, "default").show(plan_document(request, found, clusters), stream=sys.stderr)
    raise click.exceptions.Exit(1)


def _check_place(cluster: Cluster, option: Option) -> None:
    """Refuse what the scheduler would refuse for who submits, and from where."""
    account, dialect, here = cluster.account, cluster.dialect, Path.cwd()
    named = option.account or os.environ.get(scheduler_of(cluster.scheduler).account_variable)
    if account.required and not named:
        raise InputError(
            f"no account, and {cluster.title} asks for one ({account.source})",
            "the project that is billed",
            f"`--account {account.example}`, with your own project",
        )
    for place, must_be in ((dialect.submit_from, True), (dialect.never_submit_from, False)):
        path = os.path.expandvars(place)
        # A variable that is not set here says nothing about where this is.
        if place and "$" not in path and here.is_relative_to(Path(path).resolve()) != must_be:
            raise InputError(
                f"{here}: {cluster.title} takes "
                f"{'jobs only' if must_be else 'no jobs'} from {place} ({dialect.source})",
                next_step=f"`cd {place}`" if must_be else "`cd` to your project's directory",
            )


def _check_log(log: str) -> None:
    """Refuse a log that cannot be written: the job would end before it begins."""
    folder = Path(log).parent
    if any(sign in str(folder) for sign in "%$"):
        return  # only the scheduler knows what stands there
    if not folder.is_dir():
        raise InputError(
            f"the log {log} cannot be written: there is no directory {folder}",
            next_step=f"`mkdir -p {shlex.quote(str(folder))}`",
        )
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"the log cannot be written: {folder.absolute()} is closed to you",
            next_step="`--log FILE` in another directory, or `cd` to one",
        )


def _number(home: Path, reference: str) -> str:
    """Return the number of a job to wait for, which may be given by its name, or as last."""
    if reference[:1].isdigit():
        return reference
    number = find_submission(home, reference).number
    if not number:
        raise InputError(
            f"--after {reference}: the number of that job is not known",
            next_step="`teho status` looks for it",
        )
    return number


def _check_after(option: Option, wishes: ScriptOptions, home: Path) -> None:
    """Refuse to wait for a job that is not there: the scheduler would not wait at all."""
    from teho.schedulers.jobs import states
    from teho.schedulers.registry import backend_for

    numbers = sorted({re.split("[_.+]", one)[0] for one in wishes.after})
    for number, jobs in states(backend_for(option.scheduler, home), numbers).items():
        if all(job.state is JobState.UNKNOWN for job in jobs):
            raise InputError(f"--after: there is no job {number}; {jobs[0].reason}",
                             next_step="`teho status` lists yours")  # fmt: skip


def _submit(option: Option, script: Script, wishes: ScriptOptions, home: Path) -> Submission:
    """Write the script down and hand it to the scheduler, once.

    Raises:
        InputError: what is to be kept of it cannot be written; nothing is submitted then.
        SchedulerError: as `jobs.submit` does.
    """
    from teho.schedulers import jobs
    from teho.schedulers.registry import backend_for

    mark = jobs.new_mark()
    here = str(Path.cwd())
    if not _is_text(here) or not _is_text(wishes.log):
        raise InputError(
            f"{_legible(here)}: the name of a directory or log must be UTF-8",
            next_step="`cd` to another directory",
        )
    submission = Submission(
        mark=mark,
        scheduler=option.scheduler,
        cluster=option.cluster,
        name=_legible(option.request.name),
        submitted_at=datetime.now(timezone.utc),
        directory=here,
        script=str(_write(script, home, mark)),
        log=wishes.log,
        array=wishes.array,
        option=_legible_option(option),
        recorded=wishes.record,
    )
    try:
        return jobs.submit(backend_for(option.scheduler, home), submission, partial(_keep, home))
    except (MissingCommandError, RefusedError, NotSubmittedError):
        forget(home, mark)  # there is no job, so nothing is to be kept of it
        raise
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            click.echo(err=True)  # the terminal has written ^C
        say(
            "the scheduler may have the job, or not. Next: `teho status` looks for it; "
            "do not submit it again before"
        )
        raise click.exceptions.Exit(130) from None


def _is_text(words: str) -> bool:
    return words == _legible(words)


def _legible(words: str) -> str:
    r"""Write out what is not text, as `\udcff`: the script itself has the bytes."""
    return words.encode(errors="backslashreplace").decode()


def _legible_option(option: Option) -> Option:
    request = msgspec.structs.replace(
        option.request,
        name=_legible(option.request.name),
        command=tuple(map(_legible, option.request.command)),
        lines=tuple(map(_legible, option.request.lines)),
    )
    return msgspec.structs.replace(option, request=request)


def _write(script: Script, home: Path, mark: str) -> Path:
    """Write the script into a directory of the submission's own, and return its path."""
    try:
        path = new_directory(home, mark) / "job.sh"
        path.write_bytes(script.text.encode("utf-8", "surrogateescape"))
        path.chmod(0o700)
    except OSError as error:
        raise _not_kept(home, mark, error) from None
    return path


def _keep(home: Path, submission: Submission) -> None:
    """Write down what is known of a submission; of one that has a number, warn at most."""
    try:
        keep(home, submission)
    except OSError as error:
        if submission.job is None:
            raise _not_kept(home, submission.mark, error) from None
        say(
            f"job {submission.job} is submitted, but its number cannot be kept in {home} "
            f"({error.strerror}): `teho status` will look for it each time"
        )


def _not_kept(home: Path, mark: str, error: OSError) -> InputError:
    forget(home, mark)
    return InputError(
        f"nothing is submitted: the job cannot be written down in {home}: {error.strerror}",
        "a directory of yours, with space",
        "`export TEHO_HOME=DIRECTORY`",
    )
