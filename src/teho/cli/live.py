"""What the scheduler of this machine knows beyond a cluster's file, for a plan."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from teho.model.cluster import Cluster
    from teho.model.member import Live

__all__ = ["live_of", "unused_variables"]


def live_of(cluster: Cluster) -> dict[str, Live]:
    """Ask this machine's scheduler for partitions and the user's rights.

    Args:
        cluster: the one that this machine belongs to.
    """
    import getpass
    import grp

    import msgspec

    from teho.schedulers.command import run
    from teho.schedulers.registry import scheduler_of

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        return {}  # a user without a name has no associations
    groups = []
    for number in os.getgroups():
        try:
            groups.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue  # a group without a name is in no partition's list
    scheduler = scheduler_of(cluster.scheduler)
    live = scheduler.live(run, user, groups)
    if live is None:
        return {}
    account = os.environ.get(scheduler.account_variable)
    if account:
        live = msgspec.structs.replace(live, default_account=account)
    return {cluster.name: live}


def unused_variables(scheduler: str) -> str:
    """Return a sentence on variables that the scheduler would obey and Teho leaves out.

    Empty: none is set.
    """
    from teho.schedulers.registry import scheduler_of

    return scheduler_of(scheduler).unused_variables(os.environ)
