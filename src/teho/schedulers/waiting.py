"""Ask the scheduler of this cluster when it would start the options of a plan."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from teho.errors import InputError, RefusedError, SchedulerError, UnconfiguredError
from teho.model.cluster import Cluster
from teho.model.plan import Answer, Option, Refusal, Unfit
from teho.schedulers.backend import Backend
from teho.schedulers.inventory import PATIENCE_S
from teho.schedulers.jobs import estimate
from teho.schedulers.registry import scheduler_of
from teho.schedulers.script.write import write_script

__all__ = ["as_the_scheduler_says"]

_MOST_ESTIMATES = 8
"""All questions run in parallel, so a scheduler that does not answer costs the time only once."""


def as_the_scheduler_says(found: Answer, cluster: Cluster, backend: Backend) -> Answer:
    """Return the plan's answer with the scheduler's answer for each option of its cluster.

    An option that the scheduler refuses does not fit. No job is submitted. If the scheduler does
    not answer, the options stay unchanged.
    """
    own = [option for option in found.options if option.cluster == cluster.name][:_MOST_ESTIMATES]
    with TemporaryDirectory(prefix="teho-") as folder, ThreadPoolExecutor(_MOST_ESTIMATES) as pool:
        paths = [Path(folder) / f"{number}.sh" for number in range(len(own))]
        answers = list(
            pool.map(lambda option, path: _estimated(option, cluster, backend, path), own, paths)
        )
    by_option = dict(zip(own, answers, strict=True))
    options: list[Option] = []
    refused: dict[tuple[str, str], dict[Refusal, None]] = {}
    for option in found.options:
        now = by_option.get(option, option)
        if isinstance(now, Refusal):
            refused.setdefault((option.partition, option.label), {})[now] = None
        else:
            options.append(now)
    fitting = {(option.partition, option.label) for option in options}
    unfit = tuple(
        Unfit(cluster=cluster.name, partition=place[0], label=place[1], refusals=tuple(refusals))
        for place, refusals in refused.items()
        if place not in fitting
    )
    return Answer(options=tuple(options), unfit=(*unfit, *found.unfit))


def _estimated(option: Option, cluster: Cluster, backend: Backend, path: Path) -> Option | Refusal:
    request, scheduler = option.request, scheduler_of(option.scheduler)
    missing = any(advice.kind == "account_missing" for advice in option.advice)
    if missing and not os.environ.get(scheduler.account_variable):
        return option  # The scheduler would report the same.
    if not request.command:
        request = msgspec.structs.replace(request, command=("true",))
    try:
        script = write_script(msgspec.structs.replace(option, request=request), cluster)
        path.write_bytes(script.text.encode("utf-8", "surrogateescape"))
        start = estimate(backend, path, timeout_s=PATIENCE_S)
    except UnconfiguredError:
        return option  # as in a container of the cluster: no scheduler was asked
    except RefusedError as error:
        return Refusal(
            kind="scheduler",
            sentence=f"the scheduler would refuse the job; {' '.join(error.found.split())}",
            source=scheduler.estimate_source,
        )
    except (SchedulerError, InputError, OSError):
        return option
    return msgspec.structs.replace(option, expected_start_at=start)
