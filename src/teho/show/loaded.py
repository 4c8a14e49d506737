"""A recording for users of the library: `teho.load("last")`."""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from teho.config.settings import Settings, expanded, load_settings
from teho.errors import InputError, TehoError
from teho.model.document import Report
from teho.model.finding import Abstention, Finding
from teho.model.run import Run, RunState
from teho.model.summary import Summary
from teho.process.parallel_map import in_child
from teho.store.index import find_run
from teho.store.read import read_run, rows_of_node, run_state, with_parts

if TYPE_CHECKING:
    import pyarrow as pa

    from teho.config.electricity import Electricity
    from teho.explain.analysis import Analysis
    from teho.explain.policy import Policy
    from teho.model.trace import Profiled
    from teho.model.watched import WatchedProcess

__all__ = ["LoadedRun"]

_MANY_GPUS = 400
"""From this number of GPUs on, another process judges the run while this one lays out the tables
and plots: each takes seconds for 10,000 GPUs."""


_READING = threading.RLock()
"""msgspec 0.22 crashes if two threads decode a type for the first time at the same moment."""


class LoadedRun:
    """A recording. Teho computes each figure when you use it for the first time."""

    def __init__(
        self,
        directory: Path,
        settings: Settings,
        run: Run | None = None,
        *,
        running_traces: bool = True,
    ) -> None:
        """Read a run's description.

        Args:
            directory: the recording.
            settings: the user's settings, for example for the thresholds.
            run: the description, if `run.json` may lack it because the disk was full.
            running_traces: whether to read the traces of `teho profile` also if the run is still
                running. This can take seconds and some hundred MB of the job's memory.

        Raises:
            RecordingError: the recording cannot be read.
        """
        self.directory = directory
        with _READING:
            self.run: Run = read_run(directory) if run is None else with_parts(run, directory)
        """The description of the recording."""
        self.state: RunState = run_state(self.run, directory)
        """Whether the run was running, finished or interrupted when the description was read."""
        self._settings = settings
        self._reads_traces = running_traces or self.state is not RunState.RUNNING
        self.trace_problem = ""
        """Why the newest traces cannot be read, as a sentence, when `profiled` was computed."""
        self.problems: list[str] = []
        """Sentences about files that could not be read when figures were computed."""

    @classmethod
    def open(cls, reference: str) -> LoadedRun:
        """Open a recording by its id, the beginning of its id, its name, its directory, or `last`.

        Raises:
            RecordingError: no recording fits, or it cannot be read.
        """
        settings = load_settings()
        return cls(find_run(reference, settings.home_directory), settings)

    @cached_property
    def summary(self) -> Summary:
        """Every figure of the run."""
        from teho.explain.program import program_of
        from teho.explain.summary import summarise

        with _READING:
            program = program_of(self.processes)
            summary = summarise(
                self.run, self.directory, self.problems, program=program, processes=self.processes
            )
        if self.state is RunState.RUNNING:
            # The end of a file that is just being written cannot be read: no problem.
            self.problems.clear()
        return summary

    @cached_property
    def processes(self) -> tuple[WatchedProcess, ...]:
        """What the probe recorded of the Python processes; see `teho run --probe`."""
        from teho.store.probe import watched_processes

        with _READING:
            return tuple(watched_processes(self.directory, self.problems))

    @cached_property
    def policy(self) -> Policy:
        """The thresholds of all rules."""
        from teho.explain.policy import policy_of

        with _READING:
            return policy_of(self._settings)

    @cached_property
    def _electricity(self) -> Electricity:
        from teho.config.electricity import Electricity, load_electricity

        path = self._settings.electricity
        return load_electricity(expanded(path)) if path else Electricity()

    @cached_property
    def _judged(self) -> tuple[tuple[Finding, ...], tuple[Abstention, ...]]:
        with _READING:
            return self._judge()

    def _judge(self) -> tuple[tuple[Finding, ...], tuple[Abstention, ...]]:
        from teho.explain.judge import judge_all, without_future

        findings, abstentions = judge_all(self.run, self.summary, self.policy)
        if self.state is not RunState.RUNNING:
            findings = without_future(findings)
        return findings, abstentions

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the rules, most important first, corrected by the newest traces."""
        profiled = self.profiled
        if profiled is None:
            return self._judged[0]
        from teho.show.build.report.trace import findings_with_trace

        return findings_with_trace(profiled, self._judged[0], self.run.id)

    @cached_property
    def profiled(self) -> Profiled | None:
        """What the newest traces of `teho profile` say; None: no trace, or it cannot be read."""
        from teho.store.traces import newest_traces

        paths = newest_traces(self.directory) if self._reads_traces else []
        if not paths:
            return None
        from teho.profile.summary import read_traces

        try:
            with _READING:
                return read_traces(paths, by_teho=True)
        except TehoError as error:
            self.trace_problem = f"{error}."
            return None

    @property
    def abstentions(self) -> tuple[Abstention, ...]:
        """The rules that could not judge the run, and the signals that were missing."""
        return self._judged[1]

    @cached_property
    def view(self) -> Report:
        """The report as a document, with plots."""
        return self.view_with(plots=True)

    @property
    def short_view(self) -> Report:
        """The report without plots, and without the tables that have a row for each device.

        If there are many devices, these parts take most of the time.
        """
        from teho.show.build.report.document import build_report
        from teho.show.build.report.drawn import Drawn

        return build_report(self.analysis, drawn=Drawn((), (), None))

    @cached_property
    def analysis(self) -> Analysis:
        """The figures and findings of the run, from which its report is made."""
        return self._analysed(self.findings, self.abstentions)

    def _analysed(
        self, findings: tuple[Finding, ...], abstentions: tuple[Abstention, ...]
    ) -> Analysis:
        from teho.explain.analysis import Analysis

        return Analysis(
            self.run,
            self.state,
            self.summary,
            findings,
            abstentions,
            self.problems,
            self.policy,
            self._electricity,
            self.processes,
            self.profiled,
            self.trace_problem,
        )

    def view_with(self, *, plots: bool) -> Report:
        """Return the report, with or without the plots of all metrics over time."""
        from teho.show.build.report.document import build_report
        from teho.show.build.report.drawn import Drawn, drawn_of

        drawn: Drawn | None = None
        if len(self.summary.gpus) >= _MANY_GPUS and "_judged" not in vars(self):
            with _READING:  # also at the fork: no other thread may have it
                judged = in_child(self._judge)
                drawn = drawn_of(self._analysed((), ()), plots=plots)
                self._judged = judged()
        return build_report(self.analysis, plots=plots, drawn=drawn)

    def table(self, kind: str = "gpu") -> pa.Table:
        """Return the samples of all devices of a kind, of all nodes, as an Arrow table.

        Args:
            kind: `gpu` or `node`.

        Raises:
            InputError: `kind` has another value.
        """
        import pyarrow as pa

        from teho.model.metric import metrics_of
        from teho.store.schema import ROW_SCHEMA, max_column

        if kind not in {"gpu", "node"}:
            raise InputError(f"table({kind!r})", "'gpu' or 'node'")
        names = [
            name
            for metric in metrics_of("gpu" if kind == "gpu" else "node")
            for name in (metric.name, max_column(metric.name))
            if name in ROW_SCHEMA.names
        ]
        columns = ["elapsed_s", "span_s", "time", "node", "device", *names]
        tables = [
            rows.of(device).select(columns)
            for node in self.run.nodes
            if (rows := rows_of_node(self.directory, node.name, kind, columns, self.problems))
            for device in rows.places
        ]
        empty = ROW_SCHEMA.empty_table().select(columns)
        return pa.concat_tables(tables) if tables else empty

    def __repr__(self) -> str:
        return f"<teho run {self.run.id}: {self.view.verdict}>"

    def _repr_html_(self) -> str:
        import html

        from teho.show.html.page import render_html

        # A frame separates the page from the styles and scripts of the notebook.
        page = html.escape(render_html(self.view))
        return f'<iframe srcdoc="{page}" style="width:100%;height:42rem;border:0"></iframe>'
