"""Recorders on the nodes of a job, led from one place.

One `srun` starts them all and carries what is said: its input reaches each of them, and what they
answer comes out of it. It runs in a session of its own, without the user's terminal, and is
never waited for while the program runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Mapping, Sequence

from teho.observe.pipes import LineReader, send

__all__ = ["Fleet"]

_MOST_NAMED = 4
_REASON = re.compile(r"srun: (?:error|fatal): (.+)|(.*(?:unrecognized|invalid) option.*)")


class Fleet:
    """The recorders of some nodes.

    Args:
        command: what starts them.
        environment: of that command.
        hosts: the nodes.
        directory: the run's; what is put elsewhere is told.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        hosts: Sequence[str],
        directory: str,
    ) -> None:
        """Start them; where that fails, `troubles` says so."""
        self._directory = directory
        self._hosts = tuple(hosts)
        self._places: dict[str, str] = {}
        self._sealed: set[str] = set()
        self._troubles: dict[str, list[tuple[float, str]]] = {}
        self._reasons: list[str] = []
        self._began_s = time.monotonic()
        self.pid = 0
        """Of the command; 0: it could not be started."""
        to_read, self._to = os.pipe()
        from_read, from_write = os.pipe()
        self._from = LineReader(from_read)
        try:
            self.pid = os.posix_spawnp(
                command[0],
                list(command),
                dict(environment),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, to_read, 0),
                    (os.POSIX_SPAWN_DUP2, from_write, 1),
                    (os.POSIX_SPAWN_DUP2, from_write, 2),
                ],
                setsid=True,
                setsigmask=(),
                # Python ignores these two at its start.
                setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
            )
        except (OSError, NotImplementedError) as error:
            self._reasons.append(f"{command[0]}: {getattr(error, 'strerror', None) or error}")
        os.close(to_read)
        os.close(from_write)

    @property
    def descriptor(self) -> int:
        """What has something to read when there is news."""
        return self._from.descriptor

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come: all have ended, or `srun` has."""
        self.hear()
        return self._from.closed

    @property
    def has_begun(self) -> bool:
        """Whether any of them records."""
        return bool(self._places)

    def send_orders(self, orders: Mapping[str, object]) -> None:
        """Tell them what to do."""
        send(self._to, orders=orders)

    def end(self, elapsed_s: float) -> None:
        """Tell them that the program has ended."""
        if self._to >= 0:
            send(self._to, end=elapsed_s)
            os.close(self._to)
            self._to = -1

    def give_up(self) -> None:
        """End what does not end by itself."""
        if self.pid and not self.is_over:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGTERM)

    def hear(self) -> None:
        """Take in what they say."""
        for message in self._from.messages():
            node = str(message.get("node"))
            if "place" in message:
                self._places[node] = message["place"]
            elif message.get("sealed"):
                self._sealed.add(node)
            elif "trouble" in message:
                elapsed_s = message.get("elapsed_s", 0.0)
                self._troubles.setdefault(node, []).append((elapsed_s, message["trouble"]))
            elif match := _REASON.search(message.get("said", "")):
                self._reasons.append((match.group(1) or match.group(2)).strip())

    @property
    def troubles(self) -> list[tuple[float, str]]:
        """What went wrong, for the report: `(seconds after the start, sentence)`."""
        self.hear()
        elapsed_s = time.monotonic() - self._began_s
        found = [
            (at_s, f"{node}: {what}")
            for node, some in self._troubles.items()
            if node not in self._sealed
            for at_s, what in some
        ]
        if absent := [
            host for host in self._hosts if host not in self._places and host not in self._troubles
        ]:
            said = f": {self._reasons[0]}" if self._reasons else ""
            found.append((0.0, f"no recorder came up on {_names(absent)}{said}"))
        if cut_off := [node for node in self._places if node not in self._sealed]:
            what = f"the recorders of {_names(cut_off)} did not come to their end"
            found.append((elapsed_s, what))
        if apart := [
            f"{node}:{place}" for node, place in self._places.items() if place != self._directory
        ]:
            what = (
                f"{len(apart)} nodes do not see {self._directory}: their parts lie at "
                f"{_names(apart)}; `teho merge` joins them"
            )
            found.append((0.0, what))
        return found


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
