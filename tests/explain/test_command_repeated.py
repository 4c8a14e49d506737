"""A command of a script that runs again and again with the same arguments."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import NODE
from explain.scenario_parts import NodePart, figures, found, judged, scenario
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.cpu import command_repeated
from teho.model.run import ProgramUse


def made(name="gzip", processes=12, samples=40, of=100, command="", beside=(), ended=0.0):
    program = ProgramUse(
        name=name, samples=90, processes=processes, command=command or f"{name} -dc reads.gz",
        command_samples=samples, command_processes=processes,
    )  # fmt: skip
    rates = {"job_ended_cpu_s": ended, "tasks_started": 40.0}
    run, summary = scenario(NodePart(NODE, cores=8, cores_used=1.0, rates=rates))
    programs = (program, *beside)
    node = msgspec.structs.replace(run.nodes[0], programs=programs, program_samples=of)
    return msgspec.structs.replace(run, nodes=(node,)), summary


def test_the_command_is_named():
    finding = found(command_repeated, made())
    assert finding.sentence == (
        f"The same command ran at least 12 times on {NODE}, for 40 % of the time: "
        "`gzip -dc reads.gz`."
    )
    assert finding.regain_percent == pytest.approx((40 / 3, 40 * 11 / 12))


@pytest.mark.parametrize(
    "changes",
    [{"name": "simulate"}, {"processes": 4}, {"samples": 19}, {"of": 9, "samples": 9}],
)
def test_others_are_not(changes):
    assert judged(command_repeated, made(**changes)) == []


@pytest.mark.parametrize(
    "command",
    [
        "sort -n", "sort -k 3,3nr -t ,", "wc -l", "uniq -c", "cut -f 3 -d ,", "gzip -1", "gzip -dc",
        "awk '/a.b/ { n++ } END { print n }'", "awk -F '\\t' -v k=3 '$3 == k'", "sed s/a/b/",
        "sed -e s/a/b/", "grep -c reads.fq", "jq .name", "cat -", "zcat",
    ],
)  # fmt: skip
def test_a_program_that_reads_its_input_has_other_data_each_time(command):
    name = command.split()[0]
    assert judged(command_repeated, made(name=name, command=command)) == []


@pytest.mark.parametrize(
    "command",
    [
        "sort -n counts.txt", "sort -k 3,3nr -t , counts.txt", "wc -l reads.fq", "cut -f 3 a.tsv",
        "awk '{ n++ } END { print n }' a.tsv", "awk -F , -f count.awk a.tsv", "sed -n 5p a.txt",
        "grep -c ACGT reads.fq", "grep -e ACGT reads.fq", "jq .name a.json", "cat a.txt",
        "samtools view a.bam", "awk '{ n++ } END { print n }' /home/ann/a.tsv /home/ann/b.ts…",
    ],
)  # fmt: skip
def test_a_program_with_a_file_has_the_same_output(command):
    name = command.split()[0]
    assert len(judged(command_repeated, made(name=name, command=command))) == 1


def selector(name="awk", processes=36, same=2):
    return ProgramUse(
        name=name, samples=90, processes=processes, command=f"{name} -v taxon=a '...'",
        command_samples=2, command_processes=same,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["awk", "grep"])
def test_a_loop_that_selects_other_rows_each_time_gets_one_pass(name):
    finding = found(command_repeated, made(beside=[selector(name)]))
    assert finding.action.startswith("Remove the loop, and read the file only once")
    assert "`{ n[$3, $2]++ } END {" in finding.action
    assert figures(finding)["program that ran beside it, with other arguments"] == name


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("gzip", selector(processes=4)),  # seldom
        ("gzip", selector(same=19)),  # with the same arguments
        ("gzip", selector("tail")),
        ("samtools", selector()),
    ],
)
def test_other_programs_at_the_same_time_show_nothing(name, beside):
    finding = found(command_repeated, made(name=name, beside=[beside]))
    assert finding.action.startswith("If the files do not change between the calls")


@pytest.mark.parametrize(("samples", "kinds"), [
    (50, ["command_repeated"]), (49, ["command_repeated", "short_processes"]),
])  # fmt: skip
def test_a_command_that_takes_most_of_the_time_says_more_than_short_processes(samples, kinds):
    findings, _ = judge_all(*made(samples=samples, ended=0.9), load_policy())
    named = [one.kind for one in findings if one.kind in kinds]
    assert sorted(named) == kinds
