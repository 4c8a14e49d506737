"""What only the running Slurm knows, from its answers."""

from __future__ import annotations

from collections.abc import Sequence

from teho.errors import MissingCommandError, NoAnswerError
from teho.model.member import Live, NodesNow
from teho.schedulers.command import Completed
from teho.schedulers.slurm.live import slurm_live

# Account|ParentName|User|Partition|DefaultQOS|QOS|MaxTRES|MaxTRESPerNode|GrpTRES|MaxWall
OWN = """\
lab||ada||normal|long,normal|cpu=64,mem=1G|gres/gpu=2|gres/gpu=4|1-00:00:00
chem||ada|gpu||normal||||
"""
ACCOUNTS = {
    "chem,lab": "lab|faculty|||normal|normal|||cpu=512|\nlab||eve||||||cpu=1|\nchem|root||||||||\n",
    "faculty,root": "faculty|root|||||||cpu=256,node=9|\nroot|||||normal|||node=4|\n",
}
PARTITIONS = (
    "PartitionName=gpu AllowGroups=ALL State=UP Nodes=g[1-2]\nPartitionName=old State=DRAIN\n"
)
SINFO = """\
gpu|64|gpu:a100:4(S:0-1)|idle|3
gpu|64|gpu:a100:4(S:0-1)|drain*|1
old|32|(null)|down|2
garbage
old|32|(null)|mix|x
"""


class Slurm:
    """Answers; a question whose words are in `away` finds nobody."""

    def __init__(self, *away: str) -> None:
        self.away = away

    def __call__(self, argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        assert timeout_s <= 5
        assert not repeat  # one who waits at a terminal is not made to wait twice
        words = " ".join(argv)
        if any(one in words for one in self.away):
            raise NoAnswerError("away") if "sinfo" in words else MissingCommandError("not there")
        if argv[0] == "sinfo":
            assert "-e" in argv  # else nodes of different sizes are one line, with `24+` CPUs
            return done(SINFO)
        if argv[0] == "scontrol":
            return done("ClusterName = oak\n" if "config" in argv else PARTITIONS)
        if "user" in argv:
            return done("lab\n")
        assert "cluster=oak" in argv
        if "user=ada" in argv:
            return done(OWN)
        (accounts,) = (one.removeprefix("account=") for one in argv if one.startswith("account="))
        return done(ACCOUNTS[accounts])


def done(text: str) -> Completed:
    return Completed((), 0, text, "")


def live(*away: str) -> Live:
    return slurm_live(Slurm(*away), user="ada", groups=["users"])


def test_all_that_is_reported() -> None:
    told = live()
    assert told.states == {"gpu": "UP", "old": "DRAIN"}
    assert told.nodes == (
        NodesNow(partition="gpu", cpus=64, gpus=(("a100", 4),), in_service=3),
        NodesNow(partition="old", cpus=32, in_service=0),
    )
    assert (told.groups, told.default_account) == (("users",), "lab")
    assert told.associations is not None
    lab, chem = told.associations
    assert (lab.account, lab.default_qos, lab.qos) == ("lab", "normal", ("long", "normal"))
    assert (lab.max_of_job, lab.max_of_node) == ({"cpu": 64, "mem": 1024}, {"gres/gpu": 2})
    assert (lab.max_of_user, lab.max_time_s) == ({"gres/gpu": 4}, 86400.0)
    # The least of the account and of all above it; another user's limit is not hers.
    assert lab.max_of_account == {"cpu": 256, "node": 4}
    assert (chem.partition, chem.max_of_account, chem.max_time_s) == ("gpu", {"node": 4}, None)


def test_what_does_not_answer_is_not_known() -> None:
    assert live("sinfo").nodes is None
    assert live("show partition").states is None
    without = live("sacctmgr")
    assert (without.associations, without.default_account) == (None, "")
    assert without.states == {"gpu": "UP", "old": "DRAIN"}
    assert live("config").associations is None  # which cluster it is is not known


def test_limits_of_accounts_that_are_hidden_are_not_known() -> None:
    # With PrivateData=accounts, sacctmgr answers with nothing.
    for hidden in ("account=faculty", "account=chem"):
        told = live(hidden)
        assert told.associations is not None
        assert [one.max_of_account for one in told.associations] == [None, None]
