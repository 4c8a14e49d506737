"""A request as the `#SBATCH` lines of a script."""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.errors import InputError
from teho.model.cluster import Cluster
from teho.model.plan import Option
from teho.schedulers.script.directives import (
    ACCOUNT_PLACEHOLDER,
    array_text,
    disk_option,
    gpus_option,
    job_names,
    lacks_account,
    memory_text,
)
from teho.schedulers.script.options import ScriptOptions
from teho.schedulers.slurm.quoting import slurm_name, slurm_value
from teho.units import counted

__all__ = ["slurm_directives"]


def slurm_directives(option: Option, cluster: Cluster, options: ScriptOptions) -> Iterator[str]:
    """Yield the options of the `#SBATCH` lines.

    Raises:
        InputError: Slurm cannot express something.
    """
    if option.request.name:
        yield f"--job-name={slurm_value(slurm_name(option.request.name), '--name')}"
    if option.account:
        yield f"{cluster.account.option}={slurm_value(option.account, '--account')}"
    elif lacks_account(option):
        yield f"{cluster.account.option}={ACCOUNT_PLACEHOLDER}"
    if option.partition:
        yield f"--partition={slurm_value(option.partition, 'partition')}"
    request = option.request
    for name in ("qos", "reservation", "licenses"):
        if value := getattr(request, name):
            yield f"--{name}={slurm_value(value, f'--{name}')}"
    if option.constraint:
        yield cluster.dialect.constraint.format(constraint=option.constraint)
    if request.exclusive:
        yield "--exclusive"
    yield f"--nodes={option.nodes}"
    if option.nodes * option.tasks_per_node == 1:
        yield "--ntasks=1"
    else:
        yield f"--ntasks-per-node={option.tasks_per_node}"
    if "cores" not in option.automatic:
        # If Slurm counts threads, its CPUs are threads.
        yield f"--cpus-per-task={option.cpus_per_task * option.cpus_per_core}"
    if option.one_thread:
        yield "--threads-per-core=1"
    if option.memory_mib is not None and "memory" not in option.automatic:
        if option.memory_per_gpu:
            yield f"--mem-per-gpu={memory_text(option.memory_mib // option.gpus_per_node)}"
        else:
            yield f"--mem={memory_text(option.memory_mib)}"
    yield from _gpus_and_disk(option, cluster)
    if options.gpus_per_task is not None:
        yield _gpus_of_task(option, options.gpus_per_task)
    yield f"--time={_slurm_time(option.time_s)}"
    yield from _output_and_mail(options)
    if options.array:
        yield f"--array={array_text(options.array)}"
    if options.after:
        yield f"--dependency=afterok:{':'.join(job_names(options.after))}"
    if options.signal_before_s is not None:
        # With B, only the shell gets the signal and sends it on. Without B, only the steps get it.
        whom = "B:" if options.shell_is_told(option) else ""
        yield f"--signal={whom}USR1@{options.notice_s(option)}"
    if options.requeue:
        yield from ("--requeue", "--open-mode=append")
    else:
        # By default, Slurm runs a job again from its beginning if a node fails (JobRequeue=1).
        yield "--no-requeue"


def _output_and_mail(options: ScriptOptions) -> Iterator[str]:
    if options.log:
        yield f"--output={slurm_value(_slurm_path(options.log), '--log')}"
    if options.error_log:
        yield f"--error={slurm_value(_slurm_path(options.error_log), '--error-log')}"
    if moments := options.mails():
        yield f"--mail-type={','.join(moments).upper()}"
        if options.mail_to:
            yield f"--mail-user={slurm_value(options.mail_to, '--mail-to')}"


def _gpus_of_task(option: Option, each: int) -> str:
    tasks, gpus = option.tasks_per_node, option.gpus_per_node
    if each < 1 or each * tasks != gpus:
        raise InputError(
            f"--gpus-per-task {each} is not possible: the job has {counted(tasks, 'task')} and "
            f"{counted(gpus, 'GPU')} on each node",
            f"--gpus-per-task {gpus // tasks}" if gpus and gpus % tasks == 0 else "a job with GPUs",
            "`--launcher srun` starts one task per GPU" if tasks == 1 and gpus > 1 else "",
        )
    return f"--gpus-per-task={each}"


def _gpus_and_disk(option: Option, cluster: Cluster) -> Iterator[str]:
    """Yield the options for GPUs and for disk. On some sites they are one option."""
    gpus, disk = gpus_option(option, cluster), disk_option(option, cluster)
    if disk and cluster.local_disk is not None and cluster.local_disk.joins_gres:
        yield f"{gpus},{disk}" if gpus else f"--gres={disk}"
    else:
        yield from filter(None, (gpus, disk))


def _slurm_time(seconds: float) -> str:
    """Write a time as `H:MM:SS`, or as `D-HH:MM:SS` from one day."""
    days, rest = divmod(math.ceil(seconds), 86400)
    clock = f"{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{rest // 3600:02d}:{clock}" if days else f"{rest // 3600}:{clock}"


def _slurm_path(path: str) -> str:
    if "\\" in path:
        raise InputError(
            f"--log: {path!r} has a backslash, so Slurm does not replace patterns such as %j"
        )
    return path
