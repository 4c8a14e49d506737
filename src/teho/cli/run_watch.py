"""A process that notifies the user of a run if the run is stuck or nears its time limit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from teho.errors import InputError
from teho.observe.notify import Event, Notice, check_targets, notify
from teho.process.child import detach_streams, fork_child
from teho.process.json_lines import LineReader, send, wait_for
from teho.units import format_duration, parse_duration

if TYPE_CHECKING:
    from teho.config.settings import Settings
    from teho.model.finding import Finding
    from teho.model.run import Run
    from teho.show.loaded import LoadedRun
    from teho.store.long_stays import LongStays

__all__ = ["RunWatch", "StuckAction", "WatchPlan", "ended_notice", "read_action", "read_plan"]

_CHECK_S = 10.0
"""Time between two checks. The report of many nodes is made less often."""
_NICE = 19
"""It must not slow the program down, which may use all cores."""
_BEFORE_LIMIT_S = 600.0
_PATIENCE_S = 30.0
_AGAIN_S = 3600.0
"""A run that is stuck again is reported again after this time at the earliest."""
_STUCK = "run_stuck"


class StuckAction(NamedTuple):
    """What to do with a run that is stuck."""

    after_s: float
    """How long it must be stuck."""
    signal: int | None
    """Sent to the program; None: only the user is notified."""


class WatchPlan(NamedTuple):
    """What to watch for, and whom to notify."""

    targets: tuple[str, ...]
    action: StuckAction | None


def read_plan(targets: Sequence[str], if_stuck: str | None) -> WatchPlan:
    """Read the options `--notify` and `--if-stuck`.

    Raises:
        InputError: one of them is not valid.
    """
    check_targets(targets)
    action = read_action(if_stuck) if if_stuck is not None else None
    if action is not None and action.signal is None and not targets:
        raise InputError(
            f"--if-stuck {if_stuck} needs --notify",
            next_step="add `--notify TARGET`, or choose another action, such as 15m=end",
        )
    return WatchPlan(tuple(targets), action)


def read_action(text: str) -> StuckAction:
    """Read `15m=notify`, `15m=end` or `15m=USR1`.

    Raises:
        InputError: the text is not valid.
    """
    time_text, _, what = text.partition("=")
    after_s = parse_duration(time_text, "--if-stuck")
    if what == "notify":
        return StuckAction(after_s, None)
    if what == "end":
        return StuckAction(after_s, signal.SIGTERM)
    name = what.upper().removeprefix("SIG")
    number = getattr(signal, f"SIG{name}", None) if name else None
    if not isinstance(number, signal.Signals):
        raise InputError(
            f"--if-stuck {text}", "TIME=notify, TIME=end, or TIME=SIGNAL such as 15m=USR1"
        )
    return StuckAction(after_s, number)


class RunWatch:
    """The process that watches a run. It ends when `leave` is called or its parent ends.

    Args:
        plan: what to watch for.
        settings: the user's settings.
        program_pid: the program's process.

    Raises:
        OSError: no process can be started.
    """

    def __init__(self, plan: WatchPlan, settings: Settings, program_pid: int) -> None:
        orders, self._orders = os.pipe()
        self._report_end, report_end = os.pipe()
        self.pid = fork_child(partial(_watch, plan, settings, program_pid, orders, report_end))
        os.close(orders)
        os.close(report_end)

    def begin(self, directory: Path) -> None:
        """Send the process the recording to watch."""
        send(self._orders, directory=str(directory))

    def leave(self) -> list[str]:
        """End the process, and return its sentences for the report."""
        os.close(self._orders)
        reader = LineReader(self._report_end)
        deadline_s = time.monotonic() + _PATIENCE_S
        while not reader.closed and time.monotonic() < deadline_s:
            wait_for([self._report_end], deadline_s - time.monotonic())
            reader.read()
        return [str(message["trouble"]) for message in reader.take() if "trouble" in message]


def _watch(
    plan: WatchPlan, settings: Settings, program_pid: int, orders: int, report_end: int
) -> None:
    detach_streams(keep=(orders, report_end))
    os.nice(_NICE)
    reader = LineReader(orders)
    reader.wait()
    messages = list(reader.messages())
    if not messages:
        return
    directory = Path(str(messages[0]["directory"]))
    watcher = _Watcher(plan, settings, directory, program_pid)
    while not wait_for([orders], _CHECK_S):
        if not watcher.is_due():
            continue
        try:
            watcher.check()
        except Exception as error:  # noqa: BLE001 - the program and its report come first
            watcher.troubles.append(
                f"Teho could not check whether the run is stuck or near its time limit: {error!r}"
            )
        for trouble in dict.fromkeys(watcher.troubles):
            send(report_end, trouble=trouble)
        watcher.troubles.clear()


class _Watcher:
    def __init__(
        self, plan: WatchPlan, settings: Settings, directory: Path, program_pid: int
    ) -> None:
        self.troubles: list[str] = []
        self._plan = plan
        self._settings = settings
        self._directory = directory
        self._program_pid = program_pid
        self._stuck_s: float | None = None
        """Monotonic time since which the run is stuck."""
        self._notified_stuck_s = float("-inf")
        self._acted = False
        self._has_checked = False
        self._stays: LongStays | None = None
        """How long the main threads have stayed in their lines; None before the first report."""
        self._report_due_s = float("-inf")
        """Monotonic time of the next report."""
        self._action_due_s = float("inf")
        """Monotonic time at which a stuck run has been stuck for as long as `--if-stuck` says."""
        self._has_notified_limit = False
        self._has_queried = False
        self._queried_limit_s: float | None = None
        """The time limit that the scheduler reports, if the recording does not have one."""
        self._limit_due_s = float("inf")
        """Monotonic time of the notification about the time limit, if the limit is known."""

    def is_due(self) -> bool:
        """Whether it is time for a report, the time limit is near, or the run may be stuck."""
        due_s = min(self._report_due_s, self._limit_due_s, self._action_due_s)
        if time.monotonic() >= due_s:
            return True
        return self._stays is not None and self._stays.have_grown()

    def check(self) -> None:
        """Check the recording once."""
        from teho.show.loaded import LoadedRun
        from teho.show.report_pause import report_pause_s
        from teho.store.long_stays import LongStays, living_mains

        began_s = _cpu_s()
        try:
            loaded = LoadedRun(self._directory, self._settings, running_traces=False)
            self._check_limit(loaded)
            self._check_hang(loaded)
            mains = living_mains(loaded.summary.program)
            if self._stays is None or self._stays.mains != mains:
                self._stays = LongStays(self._directory, mains)
        finally:
            # The first report costs more: it imports what all reports need.
            used_s = _cpu_s() - began_s if self._has_checked else 0.0
            self._has_checked = True
            self._report_due_s = time.monotonic() + report_pause_s(used_s, _CHECK_S)

    def _check_hang(self, loaded: LoadedRun) -> None:
        finding = next((one for one in loaded.findings if one.kind == _STUCK), None)
        now_s = time.monotonic()
        self._action_due_s = float("inf")
        if finding is None:
            self._stuck_s = None
            return
        if self._stuck_s is None:
            self._stuck_s = now_s - _silent_s(finding)
        stuck_for_s = now_s - self._stuck_s
        action = self._plan.action
        least_s = action.after_s if action else 0.0
        if stuck_for_s < least_s:
            self._action_due_s = self._stuck_s + least_s
        if stuck_for_s >= least_s and now_s - self._notified_stuck_s >= _AGAIN_S:
            self._notified_stuck_s = now_s
            self._notify(
                loaded, "stuck", finding.sentence, f"{finding.sentence}\n\n{finding.action}"
            )
        if action and action.signal and stuck_for_s >= action.after_s and not self._acted:
            self._acted = True
            name = signal.Signals(action.signal).name
            os.kill(self._program_pid, action.signal)
            self.troubles.append(
                f"the run was stuck for {format_duration(stuck_for_s)}, so Teho sent {name} to the "
                "program (--if-stuck)"
            )

    def _check_limit(self, loaded: LoadedRun) -> None:
        limit_s = loaded.run.limit_s or self._queried(loaded.run)
        if limit_s is None or limit_s <= _BEFORE_LIMIT_S or self._has_notified_limit:
            return
        # The newest rows may be minutes old. This process runs on the machine of the run's clock.
        elapsed_s = (datetime.now(timezone.utc) - loaded.run.started_at).total_seconds()
        left_s = limit_s - elapsed_s
        self._limit_due_s = time.monotonic() + left_s - _BEFORE_LIMIT_S
        if left_s <= _BEFORE_LIMIT_S:
            self._has_notified_limit, self._limit_due_s = True, float("inf")
            sentence = f"The job reaches its time limit in {format_duration(left_s)}."
            text = f"{sentence}\n\n{loaded.short_view.verdict}"
            self._notify(loaded, "time_limit", sentence, text)

    def _queried(self, run: Run) -> float | None:
        """Return the time limit that the scheduler reports; it is asked once."""
        from teho.schedulers.job_end import asked_limit_s

        if not self._has_queried and self._plan.targets and run.nodes:
            self._has_queried = True
            self._queried_limit_s = asked_limit_s(run, self._settings.home_directory)
        return self._queried_limit_s

    def _notify(self, loaded: LoadedRun, event: Event, title: str, text: str) -> None:
        run = loaded.run
        notice = Notice(event, run.id, f"{run.name or run.id}: {title}", f"{text}\n\n{run.id}\n")
        self.troubles += notify(self._plan.targets, notice)


def _cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _silent_s(finding: Finding) -> float:
    """Return how long the run was stuck when it was found."""
    value = finding.evidence[0].value if finding.evidence else 0.0
    return value if isinstance(value, float) else 0.0


def ended_notice(loaded: LoadedRun) -> Notice:
    """Return the notification at the end of a run: its verdict, and the short report."""
    from teho.show.text.document import render_text

    report = loaded.view_with(plots=False)
    text = render_text(report, width=78, color=False, detail="brief")
    name = loaded.run.name or loaded.run.id
    return Notice("ended", loaded.run.id, f"{name}: {report.verdict}", text)
