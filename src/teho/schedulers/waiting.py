"""What the scheduler of this cluster says of a plan's options: when it would start them, or no."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from teho.errors import InputError, RefusedError, SchedulerError
from teho.model.cluster import Cluster
from teho.model.plan import Answer, Option, Refusal, Unfit
from teho.schedulers.backend import Backend
from teho.schedulers.jobs import estimate
from teho.schedulers.registry import scheduler_of
from teho.schedulers.script.write import write_script

__all__ = ["as_the_scheduler_says"]

# A plan is asked for at a terminal: what is not known by then is left out.
_PATIENCE_S = 5.0
_MOST_ASKED = 8
"""All at once, so that a scheduler that hangs costs its patience once."""


def as_the_scheduler_says(found: Answer, cluster: Cluster, backend: Backend) -> Answer:
    """Return the answer with what the scheduler says of each option of its cluster.

    An option that it refuses does not fit. Nothing is submitted. If the scheduler cannot be
    asked, the options stay as they are.
    """
    own = [option for option in found.options if option.cluster == cluster.name][:_MOST_ASKED]
    with TemporaryDirectory(prefix="teho-") as folder, ThreadPoolExecutor(_MOST_ASKED) as pool:
        paths = [Path(folder) / f"{number}.sh" for number in range(len(own))]
        told = list(
            pool.map(lambda option, path: _asked(option, cluster, backend, path), own, paths)
        )
    by_option = dict(zip(own, told, strict=True))
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


def _asked(option: Option, cluster: Cluster, backend: Backend, path: Path) -> Option | Refusal:
    request, scheduler = option.request, scheduler_of(option.scheduler)
    missing = any(advice.kind == "account_missing" for advice in option.advice)
    if missing and not os.environ.get(scheduler.account_variable):
        return option  # the scheduler would say no more than that
    if not request.command:
        request = msgspec.structs.replace(request, command=("true",))
    try:
        script = write_script(msgspec.structs.replace(option, request=request), cluster)
        path.write_bytes(script.text.encode("utf-8", "surrogateescape"))
        start = estimate(backend, path, timeout_s=_PATIENCE_S)
    except RefusedError as error:
        return Refusal(
            kind="scheduler",
            sentence=f"the scheduler would refuse the job; {' '.join(error.found.split())}",
            source=scheduler.estimate_source,
        )
    except (SchedulerError, InputError, OSError):
        return option
    return msgspec.structs.replace(option, expected_start_at=start)
