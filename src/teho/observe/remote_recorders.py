"""Starts and controls the recorders on the other nodes of a job.

One `srun` starts all of them and carries their messages: each recorder gets the input of `srun`,
and `srun` prints their answers. It runs in a separate session, without the user's terminal. The
program never waits for it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from teho.patterns import lazy_pattern
from teho.process.child import spawn_with_pipe
from teho.process.json_lines import LineReader, send

__all__ = ["RemoteRecorders"]

_MOST_NAMED = 4
_TRIES = 3
_START_S = 60.0
"""How long recorders may take to start on a busy cluster."""
_REASON = lazy_pattern(r"srun: (?:error|fatal): (.+)|(.*(?:unrecognized|invalid) option.*)")
# srun gives up all nodes if one of them does not answer.
_UNREACHED = lazy_pattern(r"Task launch for \S+ failed on node ([\w.-]+)")


class RemoteRecorders:
    """The recorders of some nodes, and their `troubles`.

    Args:
        command: returns the command that starts recorders on some nodes, and its environment.
        hosts: the nodes.
        directory: the run's.
        orders: sent to each recorder.
    """

    def __init__(
        self,
        command: Callable[[Sequence[str]], tuple[Sequence[str], Mapping[str, str]]],
        hosts: Sequence[str],
        directory: str,
        orders: Mapping[str, object],
    ) -> None:
        """Start them."""
        self._command = command
        self._hosts = tuple(hosts)
        self._directory = directory
        self._orders = orders
        self._begun: set[str] = set()
        self._other_places: dict[str, str] = {}
        """Node -> directory of its part, if the node does not see the run's directory."""
        self._sealed: set[str] = set()
        self._troubles: dict[str, list[tuple[float, str]]] = {}
        self._reasons: list[str] = []
        self._unreached: list[str] = []
        self._began_s = time.monotonic()
        self._tries = 0
        self._to = -1
        self._from: LineReader | None = None
        self.pid = 0
        """Process id of the command; 0 if it could not be started."""
        try:
            self._start(self._hosts)
        except (OSError, NotImplementedError) as error:
            self._reasons.append(f"srun: {getattr(error, 'strerror', None) or error}")

    def _start(self, hosts: Sequence[str]) -> None:
        """Start the recorders of some nodes, and send them their orders."""
        self._tries += 1
        command, environment = self._command(hosts)
        to_read, self._to = os.pipe()
        try:
            self.pid, output = spawn_with_pipe(command, environment, to_read)
        finally:
            os.close(to_read)
        self._from = LineReader(output)
        send(self._to, orders=self._orders)

    @property
    def is_over(self) -> bool:
        """Whether all recorders have ended, or `srun` has."""
        self._read_messages()
        return self._from is None or self._from.closed

    @property
    def has_begun(self) -> bool:
        """Whether any of them records."""
        return bool(self._begun)

    def supervise(self) -> bool:
        """Start them again if a node did not answer; return whether some have yet to start."""
        if self.is_over and not self._begun and self._unreached and self._tries < _TRIES:
            left = [host for host in self._hosts if host not in self._unreached]
            with contextlib.suppress(OSError):
                self._close()
                self._start(left)
        are_missing = len(self._begun) < len(self._hosts) and not self.is_over
        return are_missing and time.monotonic() - self._began_s < _START_S

    def end(self, elapsed_s: float) -> None:
        """Report the end of the program to all recorders."""
        if self._to >= 0:
            send(self._to, end=elapsed_s)
        self._close()

    def _close(self) -> None:
        if self._to >= 0:
            os.close(self._to)
            self._to = -1

    def terminate(self) -> None:
        """Terminate the recorders that have not ended."""
        if self.pid and not self.is_over:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGTERM)

    def _read_messages(self) -> None:
        for message in self._from.messages() if self._from else ():
            node, line = str(message.get("node")), str(message.get("said", ""))
            if "place" in message:
                self._begun.add(node)
                if not message["shared"]:
                    self._other_places[node] = message["place"]
            elif message.get("sealed"):
                self._sealed.add(node)
            elif "trouble" in message:
                elapsed_s = message.get("elapsed_s", 0.0)
                self._troubles.setdefault(node, []).append((elapsed_s, message["trouble"]))
            elif match := _REASON.search(line):
                self._reasons.append((match.group(1) or match.group(2)).strip())
                self._unreached += _UNREACHED.findall(line)

    @property
    def troubles(self) -> list[tuple[float, str]]:
        """Problems for the report: `(seconds after the start, sentence)`."""
        self._read_messages()
        found = [
            (at_s, f"{node}: {what}")
            for node, some in self._troubles.items()
            if node not in self._sealed
            for at_s, what in some
        ]
        if absent := [
            host for host in self._hosts if host not in self._begun and host not in self._troubles
        ]:
            reason = f": {self._reasons[0]}" if self._reasons else ""
            found.append((0.0, f"no recorder started on {_names(absent)}{reason}"))
        if cut_off := sorted(self._begun - self._sealed):
            what = f"the recorders of {_names(cut_off)} did not complete their recordings"
            found.append((time.monotonic() - self._began_s, what))
        if self._other_places:
            places = [f"{node}:{place}" for node, place in sorted(self._other_places.items())]
            what = (
                f"{self._directory} is not visible on {_names(sorted(self._other_places))}. The "
                f"samples of these nodes are in {_names(places)}. Join the parts with `teho merge`"
            )
            found.append((0.0, what))
        return found


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
