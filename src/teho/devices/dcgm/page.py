"""DCGM's figures from the page of a dcgm-exporter, in Prometheus' text format.

A thread fetches the page, so that no sample waits for it. The exporter updates its page every 30 s
by default (`--collect-interval`). The first page covers the time before the run, so its figures are
not used.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from teho.devices.dcgm.fields import FIELDS, METRICS, Entity, value_of
from teho.errors import DeviceError
from teho.model.device import Reading
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = ["DcgmPage"]

_DEFAULT = "localhost:9400/metrics"
"""Default address of a dcgm-exporter (its command-line reference)."""
_EVERY_S = 5.0
"""Time between two requests. A request needs 0.4 ms of CPU time, 1.5 ms for a new page of 8 GPUs
(measured on the 2-core machine of docs/benchmarks.md)."""
_TIMEOUT_S = 3.0
_FIRST_ANSWER_S = 1.0
"""Longest time that the recorder's start waits for the page."""
_STALE_S = 90.0
"""Three times the exporter's default interval."""
_MOST_BYTES = 8 << 20

_LINE = lazy_pattern(r"(DCGM_FI_PROF_\w+)\{(.*)\}\s+(\S+)(?:\s+(-?\d+))?\s*")
_LABEL = lazy_pattern(r'(\w+)="((?:[^"\\]|\\.)*)"')
_BY_NAME = {field.name: field for field in FIELDS}

_Figures = dict[Entity, dict[str, Reading]]


class _Page(NamedTuple):
    """The content of the page when it last changed."""

    changed_s: float
    """Time by the monotonic clock."""
    text: bytes
    figures: _Figures
    stamped_s: float | None
    """Unix time of its oldest figure; None if the page has no times."""


class DcgmPage:
    """The figures of a dcgm-exporter on this node, or at an address that the user sets.

    Args:
        wanted: the GPUs and MIG instances to find.
        environment: the recorder's; `DCGM_EXPORTER_URL` is the address of another page.

    Raises:
        DeviceError: the page cannot be read, or has no profiling figure of these GPUs.
    """

    def __init__(self, wanted: Collection[Entity], environment: Mapping[str, str]) -> None:
        self._host, self._port, self._path = _place(environment.get("DCGM_EXPORTER_URL"))
        self._name = f"the page of a dcgm-exporter at {self._host}:{self._port}"
        self._wanted = frozenset(wanted)
        self._first: _Page | None = None
        self._page: _Page | None = None
        self._problem = f"{self._name} does not answer within {_FIRST_ANSWER_S:.0f} s"
        self._has_answered = threading.Event()
        self._over = threading.Event()
        note = f"the activity of multiprocessors and pipes is from {self._name}. By default, this "
        note += "page is updated every 30 s, so the beginning of a run has no such values"
        self.notes: tuple[str, ...] = (note,)
        threading.Thread(target=self._follow, name="dcgm-exporter", daemon=True).start()
        self._has_answered.wait(_FIRST_ANSWER_S)
        first: _Page | None = self._first  # the thread has set it meanwhile
        if first is None or not first.figures:
            self.close()
            lacking = f"{self._name} has no DCGM_FI_PROF value for the GPUs of this node"
            raise DeviceError(lacking if first else self._problem)

    def read(self) -> _Figures:
        """Return the newest figures; none until the page has changed for the first time."""
        page, problem, first = self._page, self._problem, self._first
        if page is None or first is None:
            return {}
        if problem:
            return self._all(problem)
        if time.monotonic() - page.changed_s > _STALE_S:
            return self._all(f"{self._name} has not changed for {_STALE_S:.0f} s")
        if page.stamped_s is not None and time.time() - page.stamped_s > _STALE_S:
            return self._all(f"{self._name} shows values that are more than {_STALE_S:.0f} s old")
        if page is first:
            return {entity: {} for entity in first.figures}
        lacking = Missing(Reason.ABSENT, f"{self._name} does not have this metric for this GPU")
        absent: dict[str, Reading] = dict.fromkeys(METRICS, lacking)
        return {entity: absent | values for entity, values in page.figures.items()}

    def close(self) -> None:
        """Stop fetching the page."""
        self._over.set()

    def _all(self, why: str) -> _Figures:
        missing: dict[str, Reading] = dict.fromkeys(METRICS, Missing(Reason.FAILED, why))
        return dict.fromkeys(self._first.figures if self._first else (), missing)

    def _follow(self) -> None:
        """Fetch the page repeatedly, in a thread."""
        while not self._over.is_set():
            try:
                text = self._fetch()
            except (OSError, http.client.HTTPException, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error) or type(error).__name__
                self._problem = f"{self._name} cannot be read: {why}"
            else:
                self._take(text)
                self._problem = ""
            self._has_answered.set()
            self._over.wait(_EVERY_S)

    def _fetch(self) -> bytes:
        """Return the lines of DCGM.

        Raises:
            OSError: no answer in time.
            HTTPException: the answer is not HTTP.
            ValueError: the answer is not a page, or is too long.
        """
        deadline_s = time.monotonic() + _TIMEOUT_S
        # Not urllib: it would use the proxies of the environment.
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT_S)
        with contextlib.closing(connection):
            connection.request("GET", self._path)
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise ValueError(f"HTTP status {answer.status}")
            text = b""
            while part := answer.read1(1 << 16):
                text += part
                if time.monotonic() > deadline_s:
                    raise TimeoutError("timed out")
                if len(text) > _MOST_BYTES:
                    raise ValueError(f"more than {_MOST_BYTES >> 20} MiB")
        return b"\n".join(line for line in text.splitlines() if line.startswith(b"DCGM_"))

    def _take(self, text: bytes) -> None:
        """Keep the page if it has changed."""
        if self._page and self._page.text == text:
            return
        self._page = _read_page(text.decode(errors="replace"), self._wanted)._replace(
            changed_s=time.monotonic(), text=text
        )
        self._first = self._first or self._page


def _read_page(text: str, wanted: Collection[Entity]) -> _Page:
    figures: _Figures = {}
    stamps = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        field = _BY_NAME.get(match[1]) if match else None
        if match is None or field is None:
            continue
        labels = dict(_LABEL.findall(match[2]))
        # The UUID of a MIG instance is the whole GPU's. GPU_I_ID is the instance's number.
        instance = labels.get("GPU_I_ID", "")
        uuid = labels.get("UUID") or labels.get("uuid") or ""
        entity = Entity(uuid, int(instance) if instance.isdecimal() else None)
        if entity in wanted:
            figures.setdefault(entity, {})[field.metric] = value_of(match[3], field)
            if match[4]:
                stamps.append(int(match[4]) / 1000)
    return _Page(0.0, b"", figures, min(stamps, default=None))


def _place(url: str | None) -> tuple[str, int, str]:
    """Return host, port and path of the page.

    Raises:
        DeviceError: the address is not a plain HTTP address.
    """
    text = url or _DEFAULT
    try:
        parts = urlsplit(text if "//" in text else f"//{text}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host = None
    if host is None or parts.scheme not in {"", "http"}:
        raise DeviceError(
            "DCGM_EXPORTER_URL is not the address of an HTTP page (HTTPS is not possible)",
            f"an address such as {_DEFAULT}",
        )
    return host, port, (parts.path or "/metrics") + (f"?{parts.query}" if parts.query else "")
