"""Rules about programs that Teho cannot look into, on both sides of their thresholds."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import process, watched
from explain.scenario_parts import NodePart, figures, found, judged, scenario
from explain.scenarios import a_process_for_each_line, triangular_loop
from teho.explain.rules.cpu import openmp_uneven, short_processes
from teho.model.finding import Abstention, Certainty
from teho.model.run import ShellLoop


class TestShortProcesses:
    def test_says_how_many_and_how_short(self) -> None:
        finding = found(short_processes, a_process_for_each_line())
        assert finding.sentence == (
            "The program started about 300 short processes per second on r01c01. These processes "
            "used 84 % of the program's CPU time."
        )
        each_ms = figures(finding)["mean CPU time of a process, at least"]
        assert each_ms == pytest.approx(2.67, abs=0.01)
        assert finding.certainty is Certainty.LIKELY

    @pytest.mark.parametrize(
        ("ended", "started", "count"),
        [
            (0.30, 10.0, 1), (0.29, 10.0, 0),  # its share of the CPU time
            (0.50, 10.0, 1), (0.51, 10.0, 0),  # the time of each: 50 ms
        ],
    )  # fmt: skip
    def test_thresholds(self, ended: float, started: float, count: int) -> None:
        rates = {"job_ended_cpu_s": ended, "tasks_started": started}
        made = scenario(NodePart(cores_used=1.0, rates=rates))
        assert len(judged(short_processes, made)) == count

    def test_on_a_shared_node_it_is_only_possible(self) -> None:
        run, summary = a_process_for_each_line()
        node = msgspec.structs.replace(run.nodes[0], core_count_node=128)
        shared = msgspec.structs.replace(run, nodes=(node,))
        assert found(short_processes, (shared, summary)).certainty is Certainty.POSSIBLE

    def test_the_samples_of_a_python_program_say_more(self) -> None:
        rates = {"job_ended_cpu_s": 0.8, "tasks_started": 300.0}
        made = watched(process(), parts=[NodePart(cores_used=1.0, rates=rates)])
        assert judged(short_processes, made) == []

    @pytest.mark.parametrize(
        ("loops", "sentence", "action"),
        [
            ([("while read -r line", "cut", "awk")],
             ("In each iteration, the loop `while read -r line` at scan.sh:30 starts `cut` and "
             "`awk` (lines 31 and 32)."), "Replace the loop at scan.sh:30 by one `awk`"),
            ([("while read -r line", "samtools")],
             "the loop `while read -r line` at scan.sh:30 starts `samtools` (line 31).",
             "Start fewer processes"),
            # Loops over a few files come after those over lines.
            ([("for f in *.gz", "gzip", "rm", "wc"), ("while read -r line", "cut")],
             "the loop `while read -r line` at scan.sh:30 starts `cut` (line 31).", "Replace"),
            ([("for f in *", "gzip"), ("for g in *", "sed", "tr"), ("for h in *", "rm", "cp")],
             ("the loop `for g in *` at scan.sh:30 starts `sed` and `tr` (lines 31 and 32), and "
              "the loop `for h in *` at scan.sh:30 starts"), "Start fewer processes"),
        ],
    )  # fmt: skip
    def test_names_the_loops_of_scripts(
        self, loops: list[tuple[str, ...]], sentence: str, action: str
    ) -> None:
        made = tuple(
            ShellLoop(file="scan.sh", line=30, text=text, commands=tuple(enumerate(names, 31)))
            for text, *names in loops
        )
        run, summary = a_process_for_each_line()
        node = msgspec.structs.replace(run.nodes[0], shell_loops=made)
        finding = found(short_processes, (msgspec.structs.replace(run, nodes=(node,)), summary))
        assert sentence in finding.sentence
        assert finding.action.startswith(action)

    def test_a_file_that_each_iteration_reads_again(self) -> None:
        loop = ShellLoop(
            file="scan.sh",
            line=30,
            text="while read -r n",
            commands=((31, "sed"),),
            read_again=((31, "$work/sheets.txt"),),
        )
        run, summary = a_process_for_each_line()
        node = msgspec.structs.replace(run.nodes[0], shell_loops=(loop,))
        finding = found(short_processes, (msgspec.structs.replace(run, nodes=(node,)), summary))
        assert finding.sentence.endswith(
            "There, the program at line 31 reads the whole file `$work/sheets.txt` again."
        )
        assert finding.action.startswith(
            "Read `$work/sheets.txt` only once: before the loop at scan"
        )
        assert "{ want[$1]; next } FNR in want' LIST $work/sheets.txt > PICKED`" in finding.action

    def test_an_older_recording_does_not_have_the_figure(self) -> None:
        run, summary = a_process_for_each_line()
        (node,) = summary.nodes
        totals = {name: one for name, one in node.totals.items() if name != "job_ended_cpu_s"}
        older = msgspec.structs.replace(node, totals=totals)
        outcome = judged(short_processes, (run, msgspec.structs.replace(summary, nodes=(older,))))
        assert isinstance(outcome, Abstention)


class TestUnevenThreads:
    def test_says_how_uneven(self) -> None:
        finding = found(openmp_uneven, triangular_loop())
        assert finding.sentence == (
            "The OpenMP threads on r01c01 had unequal work: the busiest thread used 99 % of a "
            "core, but the average thread used 52 % of a core."
        )
        assert finding.regain_percent == (0.0, pytest.approx(47.5, abs=0.1))

    @pytest.mark.parametrize(
        ("busiest", "mean", "count"),
        [(90.0, 71.9, 1), (90.0, 73.0, 0), (50.0, 30.0, 1), (49.0, 30.0, 0)],
    )
    def test_thresholds(self, busiest: float, mean: float, count: int) -> None:
        signals = {"job_busiest_thread_percent": busiest, "job_mean_thread_percent": mean}
        assert len(judged(openmp_uneven, scenario(NodePart(signals=signals)))) == count

    def test_without_openmp_there_is_nothing_to_say(self) -> None:
        assert judged(openmp_uneven, scenario(NodePart())) == []
