"""What the supervisor and its recorders say to each other: one JSON line a message.

To a recorder: `{"plan": …}`, or `{"orders": …}` to those of a job's other nodes;
`{"end": elapsed_s}` when the program has ended. The pipe closing without it means that the
supervisor is gone and the program may still run.
From the recorder: `{"signal": number}` for each signal that reached it, which tells
the supervisor that the whole group got it; `{"trouble": sentence, "elapsed_s": …}`;
`{"released": true}` when it goes on for other tasks of the node.
From those of a job's nodes, each with its `node`: `{"place": directory, "shared": whether}` when
it begins, troubles, and `{"sealed": whether}` when it has come to its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["LineReader", "send", "wait_for"]


def send(descriptor: int, **message: Any) -> None:
    """Write one message; a reader that is gone or too slow is not a reason to fail."""
    # An OSError here is a full pipe or a vanished reader: either way nobody can be told.
    try:
        os.write(descriptor, json.dumps(message).encode() + b"\n")
    except OSError:
        return


def wait_for(descriptors: Sequence[int], timeout_s: float | None = None) -> bool:
    """Wait until one of these has something to read, or has lost its writer; return whether."""
    # Not select(2): it fails above descriptor 1023, and those are inherited too.
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000))


class LineReader:
    """Reads messages from a pipe without ever blocking."""

    def __init__(self, descriptor: int) -> None:
        """Take over the reading end of a pipe."""
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.closed = False
        self._rest = b""
        self._waiting: deque[dict[str, Any]] = deque()

    @property
    def has_messages(self) -> bool:
        """Whether something was read already and not taken yet, of which poll(2) knows nothing."""
        return bool(self._waiting)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until there is something to read or the writer is gone; return whether."""
        if self.has_messages or self.closed:
            return True
        return wait_for([self.descriptor], timeout_s)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield the messages that have come in; sets `closed` when the writer is gone.

        What is not taken now is there the next time. A line that is none of ours comes as
        `{"said": line}`.
        """
        while not self.closed:
            try:
                chunk = os.read(self.descriptor, 65536)
            except BlockingIOError:
                break
            except ConnectionError:
                chunk = b""  # of a socket, the other side has died
            if not chunk:
                self.closed = True
            self._rest += chunk
        *lines, self._rest = self._rest.split(b"\n")
        self._waiting.extend(map(_message, lines))
        while self._waiting:
            yield self._waiting.popleft()


def _message(line: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        if isinstance(message, dict):
            return message
    return {"said": line.decode(errors="replace")}
