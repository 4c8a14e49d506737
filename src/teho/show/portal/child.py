"""Computes pages about recordings in a process of its own, with a limit on memory and time.

A recording can come from somebody else. A file that needs too much memory, or that never ends, then
ends only this process, which `teho portal-page` is.
"""

from __future__ import annotations

import os
import resource
import select
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from teho.config.settings import load_settings
from teho.errors import TehoError
from teho.model.document import Document
from teho.show.html.page import page_parts
from teho.show.loaded import LoadedRun
from teho.show.portal.spare import SPARE_S

__all__ = ["answered", "computed", "limit_resources"]

_MEMORY_BYTES = 3 << 30
"""Address space: Arrow reserves more of it than it uses."""
_CPU_S = 120
_JUDGE_NICE = 5
"""Verdicts of a list come in the background: other programs, and pages, go first."""
_LOADED_FIRST = (
    "pyarrow.parquet",
    "teho.config.electricity",
    "teho.explain.analysis",
    "teho.explain.judge",
    "teho.explain.program",
    "teho.explain.summary",
    "teho.show.build.report.document",
    "teho.show.build.report.drawn",
)
"""Modules that each report needs, and that take the most time to load."""
_ERROR = b"!"


def limit_resources(kind: str) -> None:
    """Limit the memory and the CPU time of this process.

    Args:
        kind: what it computes; see `computed`.
    """
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    if kind == "judge":
        os.nice(_JUDGE_NICE)


def answered() -> bytes:
    """Load modules, wait for a question on standard input, and return the answer to it.

    The answer is empty if no question comes.
    """
    for module in _LOADED_FIRST:
        import_module(module)
    if not select.select([sys.stdin], [], [], SPARE_S)[0]:
        return b""
    question = sys.stdin.buffer.read()
    if not question:
        return b""  # the portal has ended, or does not need this process any more
    kind, directories = msgspec.json.decode(question, type=tuple[str, list[str]])
    return computed(kind, directories)


def computed(kind: str, directories: Sequence[str]) -> bytes:
    """Return what was asked for, as JSON; `!` and a sentence if it cannot be computed.

    Args:
        kind: `report`, `diff`, `json` or `judge`.
        directories: the recordings.
    """
    try:
        return _computed(kind, directories)
    except TehoError as error:
        return _ERROR + error.found.encode(errors="backslashreplace")
    except MemoryError:
        return _ERROR + b"the samples of this run need too much memory"


def _computed(kind: str, directories: Sequence[str]) -> bytes:
    settings = load_settings()
    if kind == "judge":
        return _judge(directories)
    runs = [LoadedRun(Path(directory), settings) for directory in directories]
    document: Document
    if kind == "diff":
        from teho.show.build.diff import diff_document, several_document

        document = diff_document(*runs) if len(runs) == 2 else several_document(runs)
    else:
        document = runs[0].view
    if kind == "json":
        from teho.show.json.report import render_json

        return render_json(document).encode()
    return msgspec.json.encode(page_parts(document))


def _judge(directories: Sequence[str]) -> bytes:
    """Return the verdict of each recording, in their order."""
    from teho.model.run import RunState
    from teho.show.judged import judged, judged_by

    settings = load_settings()
    found = []
    for directory in directories:
        try:
            loaded = LoadedRun(Path(directory), settings)
            if loaded.state is RunState.RUNNING:
                one = judged_by(loaded.short_view)
            else:
                # No limit on the size: this process has a limit on its time.
                one = judged(Path(directory), settings, loaded.run, most_bytes=sys.maxsize)
        except TehoError:
            one = judged(Path(directory), settings, None)
        found.append(one)
    return msgspec.json.encode(found)
