"""How long the options of a plan would wait: the scheduler of this cluster is asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from teho.errors import InputError, RefusedError, SchedulerError
from teho.model.cluster import Cluster
from teho.model.plan import Answer, Option
from teho.schedulers.backend import Backend
from teho.schedulers.jobs import estimate
from teho.schedulers.script import write_script

__all__ = ["with_expected_starts"]

# A plan is asked for at a terminal: what is not known by then is left out.
_PATIENCE_S = 5.0
_MOST_ASKED = 8
"""All at once, so that a scheduler that hangs costs its patience once."""


def with_expected_starts(found: Answer, cluster: Cluster, backend: Backend) -> Answer:
    """Return the answer with what the scheduler says of each option of its cluster.

    Nothing is submitted. Where the scheduler cannot be asked, the options stay as they are.
    """
    own = [option for option in found.options if option.cluster == cluster.name][:_MOST_ASKED]
    with TemporaryDirectory(prefix="teho-") as folder, ThreadPoolExecutor(_MOST_ASKED) as pool:
        paths = [Path(folder) / f"{number}.sh" for number in range(len(own))]
        told = list(
            pool.map(lambda option, path: _asked(option, cluster, backend, path), own, paths)
        )
    by_option = dict(zip(own, told, strict=True))
    options = tuple(by_option.get(option, option) for option in found.options)
    return msgspec.structs.replace(found, options=options)


def _asked(option: Option, cluster: Cluster, backend: Backend, path: Path) -> Option:
    request = option.request
    if not request.command:
        request = msgspec.structs.replace(request, command=("true",))
    try:
        script = write_script(msgspec.structs.replace(option, request=request), cluster)
        path.write_bytes(script.text.encode("utf-8", "surrogateescape"))
        start = estimate(backend, path, timeout_s=_PATIENCE_S)
    except RefusedError as error:
        return msgspec.structs.replace(option, refused=" ".join(error.found.split()))
    except (SchedulerError, InputError, OSError):
        return option
    return msgspec.structs.replace(option, expected_start_at=start)
