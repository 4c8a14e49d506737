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
_AT_ONCE = 4


def with_expected_starts(found: Answer, cluster: Cluster, backend: Backend) -> Answer:
    """Return the answer with what the scheduler says of each option of its cluster.

    Nothing is submitted. Where the scheduler cannot be asked, the options stay as they are.
    """
    with TemporaryDirectory(prefix="teho-") as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = pool.map(
            lambda numbered: _asked(
                numbered[1], cluster, backend, Path(folder) / f"{numbered[0]}.sh"
            ),
            enumerate(found.options),
        )
        return msgspec.structs.replace(found, options=tuple(asked))


def _asked(option: Option, cluster: Cluster, backend: Backend, path: Path) -> Option:
    if option.cluster != cluster.name:
        return option
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
