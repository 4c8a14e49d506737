"""Rank 0's part of the check: it leads all ranks from stage to stage, and finds problems.

In each stage every rank does the same, sends one message, and waits for the messages of all
others. So no rank measures while another one is still in the previous stage.
"""

from __future__ import annotations

import socket
import sys
import time
from typing import Any

from teho.launch.checking.findings import (
    Problem,
    choose_backend,
    claimed_twice,
    contradictions,
    name_group,
    rendezvous_findings,
)
from teho.launch.checking.peers import Peer, Peers
from teho.launch.checking.report import LinkTiming, NodeClock, Result
from teho.launch.checking.task import CheckTask
from teho.launch.checking.wire import ForeignError

__all__ = ["Rendezvous"]

_IMPORT_S = 300.0
"""If thousands of ranks import torch from one file system, it can take minutes."""
_LATE_S = 5.0
"""How long to wait for the other ranks after a problem in the rendezvous."""
_AFTERMATH_S = 3.0
"""How long to receive messages of the other ranks after one has failed."""
_PINGS = 10
_PING_S = 5.0
_SIZES_BYTES = (1 << 20, 1 << 24, 1 << 26)
_TIMES = 10
"""Number of all_reduce calls for each size; fewer if they are slow."""
_ROUNDS = 10
_MOST_FAILURES = 3
"""The failure of one rank makes others fail, so more lines do not help."""
_NETWORK = (
    "check for a firewall or a wrong network between these nodes: NCCL_SOCKET_IFNAME and "
    "GLOO_SOCKET_IFNAME choose the network, and NCCL_DEBUG=INFO prints more details"
)

_FILES = "check whether the file system of the torch installation is slow on these nodes"


class _BrokenError(Exception):
    """The check cannot continue; the findings have the reason."""


class Rendezvous:
    """Leads the check on rank 0."""

    def __init__(
        self, server: socket.socket, task: CheckTask, timeout_s: float, seconds: float
    ) -> None:
        """Use the socket to which the ranks connect.

        Args:
            server: from `open_rendezvous`.
            task: rank 0.
            timeout_s: time limit of one stage.
            seconds: length of one measurement.
        """
        self.result = Result(task)
        self.doing = "the rendezvous of all ranks"
        self._task = task
        self._size = task.world_size
        self._timeout_s = timeout_s
        self._seconds = seconds
        self._peers = Peers(server, task)
        self._ranks: dict[int, Peer] = {}

    def run(self) -> Result:
        """Lead all ranks through the check, then stop them."""
        try:
            self._meet()
            self._measure_clocks()
            self._measure_links()
            self._reduce()
        except _BrokenError:
            pass
        finally:
            self._peers.stop_all()
            self._show_progress("")
        self.result.remarks += self._peers.rejected
        return self.result

    def _meet(self) -> None:
        began_s = time.monotonic()
        end_s = began_s + self._timeout_s
        came: list[Peer] = []
        while not self._are_all(came) and time.monotonic() < end_s:
            self._show_progress(f"{len(came)} of {self._size} ranks have arrived")
            for peer, message in self._peers.receive(end_s):
                if message is not None and self._peers.accept_hello(peer, message):
                    came.append(peer)
                elif message is None and peer in came:
                    who = f"rank {peer.hello['rank']} on {peer.hello['node']}"
                    self._report_ended(f"{who} ended while it waited for the other ranks")
            if self.result.findings or self._disagree(came):
                end_s = min(end_s, time.monotonic() + _LATE_S)
                if len(came) >= self._size:
                    break
        waited_s = time.monotonic() - began_s
        # If two tasks have the same rank, the first one stays.
        self._ranks = {peer.hello["rank"]: peer for peer in reversed(came)}
        self.result.hellos = {rank: peer.hello for rank, peer in self._ranks.items()}
        hellos = [peer.hello for peer in came]
        if self.result.findings or not self._are_all(came):
            self.result.findings += rendezvous_findings(self._task, hellos, waited_s)
            raise _BrokenError
        self.result.met_s, self.result.last = waited_s, came[-1].hello["rank"]
        self.result.findings += contradictions(hellos)

    def _are_all(self, came: list[Peer]) -> bool:
        return len(came) == self._size and not self._disagree(came)

    def _disagree(self, came: list[Peer]) -> bool:
        """Return whether the tasks that arrived cannot be the ranks of one step."""
        ranks = {peer.hello["rank"] for peer in came}
        sizes = {peer.hello["world_size"] for peer in came}
        return len(ranks) < len(came) or not sizes <= {self._size}

    def _measure_clocks(self) -> None:
        """Ask one rank of each other node for the time. The shortest round trip is the best."""
        asked: dict[int, Peer] = {}
        for _, peer in sorted(self._ranks.items()):
            asked.setdefault(peer.hello["node_rank"], peer)
        asked.pop(self._task.node_rank, None)
        for node_rank, peer in asked.items():
            best = None
            for _ in range(_PINGS):
                sent_at_s, began_s = time.time(), time.monotonic()
                peer.send("ping")
                try:
                    answer = peer.wire.wait(_PING_S)
                except (EOFError, ForeignError, OSError):
                    break  # the next stage finds out why
                half_s = (time.monotonic() - began_s) / 2
                if best is None or half_s < best.uncertainty_s:
                    best = NodeClock(answer["at_s"] - sent_at_s - half_s, half_s)
            if best is not None:
                self.result.clocks[node_rank] = best

    def _measure_links(self) -> None:
        result = self.result
        for rank, peer in self._ranks.items():
            following = self._ranks[(rank + 1) % self._size]
            # A rank on the node of rank 0 may have connected from an address of the loopback.
            local = following.address.startswith("127.") or following.address == "::1"
            peer.send(
                "met",
                host=self._task.address if local else following.address,
                port=following.hello["port"],
                name=result.name(following.hello["rank"]),
            )
        self._gather("linked", "connecting to the next rank")
        self._send("go")
        worked = self._gather("worked", "a checksum")
        result.work_s = {rank: answer["work_s"] for rank, answer in worked.items()}
        self._send("go")
        if self._size > 1:
            echoed = self._gather("echoed", "timing round trips")
            result.round_trip_s = {rank: answer["round_trip_s"] for rank, answer in echoed.items()}
            self._send("go")
            streamed = self._gather("streamed", "sending to the next rank")
            result.link_bytes_per_s = {r: answer["bytes_per_s"] for r, answer in streamed.items()}
            self._send("go")

    def _reduce(self) -> None:
        result = self.result
        patience_s = max(_IMPORT_S, self._timeout_s)
        result.torch = self._gather("torch", "importing torch", patience_s, _FILES)
        backend, findings, result.no_collective = choose_backend(result.torch, result.hellos)
        result.findings += findings
        if not backend:
            return
        result.backend = backend
        self._send("backend", backend=backend)
        ready = self._gather("ready", "opening torch's store")
        self._send("store", port=ready[0]["port"])
        self._gather("joined", f"joining torch's process group over {backend}")
        for size_bytes in _SIZES_BYTES:
            times = self._times(size_bytes)
            if not times:
                break
            self._send("reduce", size_bytes=size_bytes, times=times)
            doing = f"all_reduce of {size_bytes >> 20} MiB over {backend}"
            self._judge(size_bytes, self._gather("reduced", doing))
        self._send("work", rounds=_ROUNDS)
        worked = self._gather("worked", f"a matrix product and all_reduce over {backend}")
        result.device_work_s = {rank: answer["work_s"] for rank, answer in worked.items()}
        result.waited_s = {rank: answer["wait_s"] for rank, answer in worked.items()}

    def _times(self, size_bytes: int) -> int:
        """Return the number of all_reduce calls for this size; 0: one would take too long."""
        if not self.result.timings:
            return _TIMES
        last = self.result.timings[-1]
        expected_s = last.elapsed_s * size_bytes / last.size_bytes
        return min(_TIMES, int(5 * self._seconds / expected_s))

    def _judge(self, size_bytes: int, answers: dict[int, dict[str, Any]]) -> None:
        """Compare the sums with the expected sum, and keep the times."""
        expected = self._size * (self._size + 1) / 2
        wrong = {
            rank: answer["sum"] for rank, answer in answers.items() if answer["sum"] != expected
        }
        if wrong:
            first = min(wrong)
            self._find(
                "sum-wrong",
                f"{self.doing} gave a wrong sum on {name_group(wrong, self.result.hellos)}: "
                f"{wrong[first]} on rank {first} instead of {expected}",
                "report this to the cluster's staff: a GPU or the network corrupts data",
            )
            raise _BrokenError
        elapsed_s = max(answer["elapsed_s"] for answer in answers.values())
        algorithm = size_bytes / elapsed_s
        # The factor is from nccl-tests of NVIDIA, doc/PERFORMANCE.md.
        bus = algorithm * 2 * (self._size - 1) / self._size if self._size > 1 else None
        self.result.timings.append(LinkTiming(size_bytes, elapsed_s, algorithm, bus))

    def _gather(
        self, about: str, doing: str, within_s: float | None = None, advice: str = _NETWORK
    ) -> dict[int, dict[str, Any]]:
        """Return the message of every rank about one stage, by rank.

        Raises:
            _BrokenError: a rank has ended, has failed, or is too late.
        """
        self.doing = doing
        self._show_progress(doing)
        patience_s = within_s or self._timeout_s
        end_s = time.monotonic() + patience_s
        answered: dict[int, dict[str, Any]] = {}
        failed: dict[int, dict[str, Any]] = {}
        ended: set[int] = set()
        while len({*answered, *failed, *ended}) < self._size and time.monotonic() < end_s:
            for peer, message in self._peers.receive(end_s):
                rank = peer.hello.get("rank", -1)
                if self._ranks.get(rank) is not peer:
                    self._receive_late(peer, message)
                elif message is None:
                    ended.add(rank)
                elif message["about"] == "failed":
                    failed[rank] = message
                elif message["about"] == about:
                    answered[rank] = message
            if ended or failed:
                end_s = min(end_s, time.monotonic() + _AFTERMATH_S)
        silent = set(self._ranks) - {*answered, *failed, *ended}
        if ended:
            self._report_ended(f"{name_group(ended, self.result.hellos)} ended during {doing}")
        elif failed:
            self._find_failed(failed)
        elif silent:
            every = len(silent) == self._size
            who = "no rank had" if every else f"{name_group(silent, self.result.hellos)} had not"
            self._find("stuck", f"{who} finished {doing} after {patience_s:.0f} s", advice)
        if ended or failed or silent:
            raise _BrokenError
        return dict(sorted(answered.items()))

    def _find_failed(self, failed: dict[int, dict[str, Any]]) -> None:
        """Report the ranks that failed; if programs were killed, report only these."""
        causes = {
            rank: message for rank, message in failed.items() if message.get("killed")
        } or failed
        for rank, message in list(causes.items())[:_MOST_FAILURES]:
            sentence = f"{self.result.name(rank)} failed in {self.doing}: {message['why']}"
            self._find("rank-failed", sentence, message.get("next") or _NETWORK)
        if len(failed) > _MOST_FAILURES:
            self.result.remarks.append(f"{len(failed)} ranks failed at the same time")

    def _receive_late(self, peer: Peer, message: dict[str, Any] | None) -> None:
        """Handle a message of a task that connected after all ranks had arrived."""
        if message is None or peer.hello or not self._peers.accept_hello(peer, message):
            return
        earlier = self.result.hellos.get(message["rank"])
        if earlier is not None:
            self.result.findings.append(claimed_twice(earlier, message))
        peer.send("stop")

    def _send(self, about: str, **data: Any) -> None:
        for peer in self._ranks.values():
            peer.send(about, **data)

    def _report_ended(self, sentence: str) -> None:
        advice = (
            "on standard error, read the messages of each rank that ended, and check whether its "
            "node ran out of memory"
        )
        self._find("rank-gone", sentence, advice)

    def _find(self, kind: str, sentence: str, next_step: str) -> None:
        self.result.findings.append(Problem(kind, sentence, next_step))

    def _show_progress(self, text: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
