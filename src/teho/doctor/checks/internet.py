"""Can a job download something?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, not_applicable, remark, unknown, warning
from teho.doctor.snapshot import Snapshot
from teho.model.missing import Missing

__all__ = ["ABOUT", "check"]

ABOUT = "internet access of this node, directly or through a proxy"

_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "WANDB_MODE")
_NOT_OFFLINE = {"", "0", "false", "no", "off", "online"}


def check(snapshot: Snapshot) -> Outcome:
    """Judge the proxy that is set; without one, use the catalogue. No server outside is asked."""
    proxy, cluster = snapshot.proxy, snapshot.cluster
    if isinstance(proxy, Missing):
        return unknown(proxy.detail)
    if proxy is not None and not proxy.why:
        return fine(f"{proxy.variable} names {proxy.place}, which answers")
    if proxy is not None:
        return warning(
            f"{proxy.variable} names {proxy.place}, which does not answer: {proxy.why}.",
            f"Run `unset {proxy.variable}`, or load the cluster's module for its proxy.",
            ("proxy", proxy.place, ""),
        )
    if cluster is None or not snapshot.in_job:
        return not_applicable("no proxy is set, and this is not a compute node that Teho knows")
    if cluster.internet_on_compute_nodes is None:
        return unknown(
            f"it is not known whether {cluster.title}'s compute nodes reach the internet"
        )
    if cluster.internet_on_compute_nodes:
        return fine(f"{cluster.title}'s compute nodes reach the internet")
    for name in _OFFLINE:
        if snapshot.environment.get(name, "").strip().lower() not in _NOT_OFFLINE:
            return fine(
                f"compute nodes have no internet, and {name} is set so that programs do not use "
                "the internet"
            )
    return remark(
        f"{cluster.title}'s compute nodes have no internet: a program that downloads will wait "
        "and fail.",
        "Download models and data on a login node first, and set "
        "`export HF_HUB_OFFLINE=1 WANDB_MODE=offline` in the job.",
        ("cluster", cluster.title, ""),
    )
