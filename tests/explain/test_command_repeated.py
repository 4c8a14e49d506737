"""A command of a script that runs again and again with the same arguments."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import NODE
from explain.scenario_parts import NodePart, found, judged, scenario
from teho.explain.rules.cpu import command_repeated
from teho.model.run import ProgramUse


def made(name="gzip", processes=12, samples=40, of=100):
    program = ProgramUse(
        name=name, samples=90, processes=processes, command=f"{name} -dc reads.gz",
        command_samples=samples, command_processes=processes,
    )  # fmt: skip
    run, summary = scenario(NodePart(NODE, cores=8, cores_used=1.0))
    node = msgspec.structs.replace(run.nodes[0], programs=(program,), program_samples=of)
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
