"""In which partitions every node has GPUs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from teho.errors import NoAnswerError
from teho.model.member import NodeShape
from teho.schedulers.command import Completed
from teho.schedulers.slurm.gpu_nodes import slurm_gpu_nodes

CONFIG = "AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu\n"
NODES = """\
small|40|(null)
gpu|40|gpu:v100:4(S:0-1)
gpu|40|gpu:v100:4(S:0-1),nvme:3600G
mig|128|gpu:a100:2(S:0,1),gpu:a100_1g.5gb:14(S:0,1)
mixed|64|gpu:a100:4
mixed|64|(null)
odd|40+|gpu:v100:4
a line of the site
"""


class Site:
    """Answers the questions of Teho."""

    def __init__(self, config: str, nodes: str) -> None:
        self.answers = {"scontrol": config, "sinfo": nodes}
        self.asked: list[str] = []

    def __call__(self, argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        del timeout_s, repeat
        self.asked.append(argv[0])
        answer = self.answers[argv[0]]
        if answer == "late":
            raise NoAnswerError("late")
        return Completed(tuple(argv), 0, answer, "")


def test_only_partitions_in_which_every_node_has_gpus() -> None:
    assert slurm_gpu_nodes(Site(CONFIG, NODES)) == {
        "gpu": (NodeShape(40, 4),),
        "mig": (NodeShape(128, 16),),
    }


@pytest.mark.parametrize(
    ("config", "nodes", "asked"),
    [
        # Without gres/gpu, each job seems to have no GPU.
        ("AccountingStorageTRES = cpu,mem,gres/gpu:v100\n", NODES, ["scontrol"]),
        ("", NODES, ["scontrol"]),
        ("late", NODES, ["scontrol"]),
        (CONFIG, "late", ["scontrol", "sinfo"]),
        # A job without GPUs has no other place.
        (CONFIG, "gpu|40|gpu:v100:4\n", ["scontrol", "sinfo"]),
    ],
)
def test_what_is_not_known_is_not_judged(config: str, nodes: str, asked: list[str]) -> None:
    site = Site(config, nodes)
    assert slurm_gpu_nodes(site) == {}
    assert site.asked == asked
