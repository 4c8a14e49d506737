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
    from teho.schedulers.grid_engine_live import grid_engine_live
    from teho.schedulers.slurm import ACCOUNT_VARIABLE
    from teho.schedulers.slurm_live import slurm_live

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
    if cluster.scheduler == "grid_engine":
        return {cluster.name: grid_engine_live(run, user=user, groups=groups)}
    live = slurm_live(run, user=user, groups=groups)
    account = os.environ.get(ACCOUNT_VARIABLE)
    if account:
        live = msgspec.structs.replace(live, default_account=account)
    return {cluster.name: live}


def unused_variables(scheduler: str) -> str:
    """Return a sentence on variables that sbatch would obey and Teho leaves out; empty: none."""
    if scheduler != "slurm":
        return ""
    from teho.schedulers.slurm import ACCOUNT_VARIABLE

    names = sorted(
        name for name in os.environ if name.startswith("SBATCH_") and name != ACCOUNT_VARIABLE
    )
    if not names:
        return ""
    verb, what = ("is", "it") if len(names) == 1 else ("are", "they")
    return (
        f"{', '.join(names)} {verb} set and not used: {what} would change the job that is "
        "announced; the options of `teho submit` say the same"
    )
