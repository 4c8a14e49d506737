"""What only the running Grid Engine knows, from its answers."""

from __future__ import annotations

from collections.abc import Sequence

from teho.errors import NoAnswerError
from teho.model.member import Association, Live
from teho.schedulers.command import Completed
from teho.schedulers.grid_engine.live import grid_engine_live

QSTAT = """\
queuename                      qtype resv/used/tot. load_avg arch          states
---------------------------------------------------------------------------------
all.q@c1                       BIP   0/0/40         0.01     lx-amd64      d
all.q@c2                       BIP   0/3/40         0.01     lx-amd64
---------------------------------------------------------------------------------
gpu.q@g1                       BP    0/0/24         -NA-     -NA-          au
gpu.q@g2                       BP    0/0/24         0.01     lx-amd64      E
old.q@c1                       BIP   0/0/40         0.01     lx-amd64      S
     12 0.55500 job        ada          r     11/23/2026 10:00:00     3
garbage
"""
ANSWERS = {
    "qconf -sul": "staff\nphd\neve\n",
    "qconf -su staff": "name staff\ntype ACL\nfshare 0\nentries ada,bob\n",
    "qconf -su phd": "name phd\ntype ACL\nentries @chemists, \\\n        carl\n",
    "qconf -su eve": "name eve\ntype ACL\nentries NONE\n",
    "qconf -sprjl": "open\nchem\nclosed\nothers\n",
    "qconf -sprj open": "name open\nacl NONE\nxacl NONE\n",
    "qconf -sprj chem": "name chem\nacl phd\nxacl NONE\n",
    "qconf -sprj closed": "name closed\nacl NONE\nxacl staff\n",
    "qconf -sprj others": "name others\nacl eve\nxacl NONE\n",
    "qconf -suser ada": "name ada\noticket 0\ndefault_project chem\n",
    "qstat -f": QSTAT,
}


class GridEngine:
    """Answers; the questions in `away` find nobody, those in `none` have no answer."""

    def __init__(self, away: Sequence[str] = (), none: Sequence[str] = ()) -> None:
        self.away, self.none = away, none

    def __call__(self, argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        assert timeout_s <= 5
        assert not repeat
        words = " ".join(argv)
        if words in self.away:
            raise NoAnswerError("away")
        if words in self.none:
            return Completed((), 1, "", "no userset list defined\n")
        return Completed((), 0, ANSWERS[words], "")


def live(*, away: Sequence[str] = (), none: Sequence[str] = ()) -> Live:
    return grid_engine_live(GridEngine(away, none), user="ada", groups=["chemists"])


def test_all_that_is_reported() -> None:
    told = live()
    assert told.states == {"all.q": "UP", "gpu.q": "DISABLED", "old.q": "SUSPENDED"}
    assert (told.user, told.user_lists) == ("ada", ("staff", "phd"))
    assert told.default_account == "chem"
    assert told.associations == (Association(account="open"), Association(account="chem"))


def test_nothing_of_a_sort_is_not_what_cannot_be_read() -> None:
    assert live(none=["qconf -sul"]).user_lists == ()
    assert live(none=["qconf -sprjl"]).associations == ()
    assert live(none=["qconf -suser ada"]).default_account == ""
    assert live(away=["qconf -su phd"]).user_lists is None
    assert live(away=["qconf -sul"]).associations is None
    assert live(away=["qconf -sprj chem"]).associations is None
    assert live(away=["qstat -f"]).states is None
