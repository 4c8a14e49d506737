"""`teho submit`: plan, script, submit, follow."""

from __future__ import annotations

import os
import re
import shlex
import sys
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from teho.cli import say
from teho.cli.declare import flag, option, program_command
from teho.cli.ended_early import interrupted
from teho.cli.here import chosen_cluster, cluster_here, live_of, planned_for_here, this_machine
from teho.cli.own_path import own_path
from teho.cli.request import (
    check_gpu_type,
    confirmed,
    read_request,
    read_script_options,
    request_options,
    script_options,
    with_environment,
)
from teho.cli.trial import check_trial, say_if_untried, short, trial_option
from teho.clusters.catalogue import load_catalogue, load_cluster
from teho.config.settings import load_settings
from teho.errors import InputError, MissingCommandError, NotSubmittedError, RefusedError
from teho.model.cluster import Cluster
from teho.model.job import JobState, Submission
from teho.model.plan import Answer, Option
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.registry import backend_for, scheduler_of, schedulers
from teho.schedulers.script.options import ScriptOptions
from teho.schedulers.script.write import Script, write_script
from teho.store.submissions import find_submission, forget, keep, new_directory

__all__ = ["command"]


@program_command("""\
  teho submit --gpus 1 --time 2h --account project_2001234 -- python train.py
  teho submit --gpus 4 --launcher torchrun --record --follow -- train.py --epochs 90
  teho submit --gpus 1 --array 1-20%4 -- bash -c 'python fold.py $SLURM_ARRAY_TASK_ID'
  teho submit --gpus 1 --time 36h --signal 10min --requeue -- python train.py --resume
  teho submit --trial --follow --gpus 4 --time 24h -- python train.py
  teho submit --local --gpus 0 --follow -- python train.py
  teho submit --cluster roihu --dry-run -- python train.py""")
@request_options
@option("--cluster NAME", "Plan for this cluster.", unset="this machine's cluster")
@script_options
@flag("-f --follow", "Print the state and the log of the job until the job ends, then the cost.")
@flag("--local", "Run the job as processes on this machine, without a cluster.")
@flag(
    "--trial",
    "Try COMMAND in a short job first: in a test partition, for two minutes or until the step rate "
    "is known.",
)
@flag("--dry-run", "Print the script, and do not submit a job.")
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    cluster: str | None,
    follow: bool,
    local: bool,
    trial: bool,
    dry_run: bool,
    argv: tuple[str, ...],
    **given: Any,
) -> None:
    """Plan a job for COMMAND, write its script, and submit the first option of the plan.

    Teho prints the number of the job. With --follow, Teho prints the log of the job instead, then
    the resources that the job used, and the cost of the job. With --trial, Teho submits a short job
    that tries COMMAND. The report of the short job says whether you can submit the long job. Exit
    code: 0 if the job was submitted, 1 if no option fits; with --follow, the exit code of the job.

    Reads: the catalogue, and the site's templates.

    Writes: the script and the number of the job to TEHO_HOME/jobs.

    Network: only through commands of the scheduler, such as sbatch. Teho also looks up the full
    host name of this machine.
    """
    request = read_request(given, argv)
    check_trial({**given, "local": local}, trial=trial)
    if local and given["env"]:
        raise InputError(
            "--env cannot be used together with --local",
            "one of them",
            "activate the environment first: a local job has the environment of this shell",
        )
    settings = load_settings()
    given["after"] = tuple(_number(settings.home_directory, one) for one in given["after"])
    given["record"] |= trial
    wishes = msgspec.structs.replace(read_script_options(given), teho=own_path(), trial=trial)
    known = _cluster(cluster, is_local=local, elsewhere=local or dry_run)
    wishes = with_environment(wishes, given["env"], known)
    submits = not (local or dry_run)
    retired = given["even_if_retired"]
    option = _chosen(request, known, submits=submits, even_if_retired=retired, trial=trial)
    if local:
        name = next(one.name for one in schedulers().values() if one.is_this_machine)
        option = msgspec.structs.replace(option, scheduler=name)
    else:
        _check_place(known, option)
        _check_log(wishes.log)
    script = write_script(option, known, wishes)
    if not planned_for_here(known.name):
        for advice in option.advice:
            if advice.kind != "account_missing" or not local:
                say(f"{advice.sentence} · {advice.source}")
    for remark in script.remarks:
        say(remark)
    if not local and (unused := scheduler_of(option.scheduler).unused_variables(os.environ)):
        say(unused)
    if dry_run:
        click.echo(script.text.encode("utf-8", "surrogateescape"), nl=False)
        return
    if wishes.after:
        _check_after(option, wishes, settings.home_directory)
    submission = _submit(option, script, wishes, settings.home_directory)
    from teho.cli.submitted import follow_to_end, log_of
    from teho.show.build.plan_words import option_sentence

    number = submission.number
    place = known.title
    if local and not planned_for_here(known.name):
        place = f"this machine, with the plan for {place}"
    each = " for each task" if wishes.array else ""
    say(f"submitted job {number} to {place}, {option_sentence(option)}{each}")
    say(f"log: {log_of(submission, settings.home_directory)}")
    if follow:
        raise click.exceptions.Exit(follow_to_end(submission, settings))
    click.echo(number)
    say(f"`teho status {number} --follow` follows the job, `teho cancel {number}` ends the job")
    if wishes.record:
        say(f"`teho report {number}` reports on the recording of the job")


def _cluster(name: str | None, *, is_local: bool, elsewhere: bool) -> Cluster:
    """Return the cluster with this name, or the one that this machine belongs to.

    Args:
        name: as the user gave it.
        is_local: whether the job runs on this machine, which need not belong to a cluster.
        elsewhere: whether the cluster may be another one than this machine's.
    """
    known = tuple(load_catalogue().values()) if name is None or not elsewhere else ()
    found = cluster_here(known, ask_network=True)
    if name is None and found is not None:
        return found
    if name is None and is_local and not load_settings().cluster:
        return this_machine()
    cluster = chosen_cluster(None) if name is None else load_cluster(name)
    if found is not None and found.name != name and not elsewhere:
        raise InputError(
            f"--cluster {name} names another cluster: this machine belongs to {found.title}",
            next_step=f"log in to {cluster.title}, or use `--local` or `--dry-run` here",
        )
    return cluster


def _chosen(
    request: Request, cluster: Cluster, *, submits: bool, even_if_retired: bool, trial: bool
) -> Option:
    """Return the first option that the scheduler accepts; if the job fits nowhere, say why and end.

    Args:
        request: what the program needs.
        cluster: the cluster to plan for.
        submits: whether the job is submitted; if not, the scheduler is not asked.
        even_if_retired: plan for a retired cluster too.
        trial: whether to return the option for a trial.
    """
    live = live_of(cluster) if submits else {}

    def answered(wanted: Request) -> Answer:
        found = answer(wanted, [cluster], even_if_retired=even_if_retired, live=live)
        return confirmed(found, cluster) if submits else found

    if trial and (option := trial_option(request, cluster, answered)):
        return option
    found = answered(short(request) if trial else request)
    if found.options:
        return found.options[0]
    if request.gpu_type is not None:
        check_gpu_type(request.gpu_type)
    from teho.cli.output import Output
    from teho.show.build.plan import plan_document

    document = plan_document(request, found, {cluster.name: cluster})
    Output("text", None, "default").show(document, stream=sys.stderr)
    raise click.exceptions.Exit(1)


def _check_place(cluster: Cluster, option: Option) -> None:
    """Refuse a job without an account, or from a directory that the cluster does not allow."""
    account, dialect, here = cluster.account, cluster.dialect, Path.cwd()
    named = option.account or os.environ.get(scheduler_of(cluster.scheduler).account_variable)
    if account.required and not named:
        raise InputError(
            f"the job names no account, but {cluster.title} needs one ({account.source})",
            "the project to charge",
            f"add `--account {account.example}` with your own project, or use the setting "
            "`account`",
        )
    for place, must_be in ((dialect.submit_from, True), (dialect.never_submit_from, False)):
        path = os.path.expandvars(place)
        # A path with an unset variable cannot be compared.
        if place and "$" not in path and here.is_relative_to(Path(path).resolve()) != must_be:
            raise InputError(
                f"{here}: {cluster.title} accepts {'jobs only' if must_be else 'no jobs'} from "
                f"{place} ({dialect.source})",
                next_step=f"`cd {place}`" if must_be else "`cd` to your project's directory",
            )


def _check_log(log: str) -> None:
    """Refuse a log that cannot be written: the scheduler would end the job at its start."""
    folder = Path(log).parent
    if any(sign in str(folder) for sign in "%$"):
        return  # only the scheduler knows the values
    if not folder.is_dir():
        raise InputError(
            f"the log {log} cannot be written: the directory {folder} does not exist",
            next_step=f"`mkdir -p {shlex.quote(str(folder))}`",
        )
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"the log cannot be written: no permission to write to {folder.absolute()}",
            next_step="choose a file in another directory with `--log FILE`, or `cd` to another "
            "directory",
        )


def _number(home: Path, reference: str) -> str:
    """Return the number of a job to wait for, from its number, its name, or `last`."""
    if reference[:1].isdigit():
        return reference
    number = find_submission(home, reference).number
    if not number:
        raise InputError(
            f"--after {reference}: the number of that job is not known",
            next_step="`teho status` looks for the number",
        )
    return number


def _check_after(option: Option, wishes: ScriptOptions, home: Path) -> None:
    """Refuse to wait for an unknown job: the scheduler would not wait at all."""
    from teho.schedulers.jobs import states

    numbers = sorted({re.split("[_.+]", one)[0] for one in wishes.after})
    for number, jobs in states(backend_for(option.scheduler, home), numbers).items():
        if all(job.state is JobState.UNKNOWN for job in jobs):
            raise InputError(f"--after: job {number} is not known; {jobs[0].reason}",
                             next_step="`teho status` lists your jobs")  # fmt: skip


def _submit(option: Option, script: Script, wishes: ScriptOptions, home: Path) -> Submission:
    """Write the script to a file, and submit it once.

    Raises:
        InputError: the submission cannot be written to disk; the job is not submitted then.
        SchedulerError: as `jobs.submit` does.
    """
    from teho.schedulers import jobs

    if not (wishes.trial or scheduler_of(option.scheduler).is_this_machine):
        say_if_untried(option, home)
    mark = jobs.new_mark()
    here = str(Path.cwd())
    if (here, wishes.log) != (_legible(here), _legible(wishes.log)):
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
        forget(home, mark)  # without a job, the record of the submission is of no use
        raise
    except KeyboardInterrupt:
        raise interrupted(
            "interrupted: it is not known whether the job was submitted. Next: run `teho status`, "
            "which looks for the job, before you submit it again"
        ) from None


def _legible(words: str) -> str:
    r"""Return a text with bytes that are not UTF-8 as `\udcff`: only the script has the bytes."""
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
    """Write the script into a new directory for the submission, and return its path."""
    try:
        path = new_directory(home, mark) / "job.sh"
        path.write_bytes(script.text.encode("utf-8", "surrogateescape"))
        path.chmod(0o700)
    except OSError as error:
        raise _not_kept(home, mark, error) from None
    return path


def _keep(home: Path, submission: Submission) -> None:
    """Write a submission to disk. If the job already has a number, a failure is only a warning."""
    try:
        keep(home, submission)
    except OSError as error:
        if submission.job is None:
            raise _not_kept(home, submission.mark, error) from None
        say(
            f"job {submission.job} is submitted, but its number cannot be written to {home} "
            f"({error.strerror}): `teho status` will look for the number each time"
        )


def _not_kept(home: Path, mark: str, error: OSError) -> InputError:
    forget(home, mark)
    return InputError(
        f"the job is not submitted: its record cannot be written to {home}: {error.strerror}",
        "a directory of your own with free space",
        "`export TEHO_HOME=DIRECTORY`",
    )
