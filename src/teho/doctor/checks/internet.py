"""Downloads inside of a job: no way out, or a proxy that is not there."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Proxy, Snapshot
from teho.model.finding import Severity
from teho.model.missing import Missing

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "internet"
ABOUT = "the way out of this node: proxies, or none"
DECISIVE = False

_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "WANDB_MODE")
_NOT_OFFLINE = {"", "0", "false", "no", "off", "online"}


def check(snapshot: Snapshot) -> Outcome:
    """Try the proxy that is set; else ask the catalogue. Nobody outside is called."""
    if isinstance(snapshot.proxy, Missing):
        return unknown(snapshot.proxy.detail)
    if snapshot.proxy is not None:
        return _proxy(snapshot.proxy)
    cluster = snapshot.cluster
    if cluster is None or not snapshot.in_job:
        return moot("no proxy is set, and this is not a compute node that Teho knows")
    if cluster.internet_on_compute_nodes is None:
        return unknown(f"whether {cluster.title}'s compute nodes reach the internet is not known")
    if cluster.internet_on_compute_nodes:
        return fine(f"{cluster.title}'s compute nodes reach the internet")
    told = [
        name
        for name in _OFFLINE
        if snapshot.environment.get(name, "").strip().lower() not in _NOT_OFFLINE
    ]
    if told:
        return fine(f"there is no internet, and {told[0]} is set")
    return [
        symptom(
            ID,
            Severity.REMARK,
            f"{cluster.title}'s compute nodes have no internet: a program that downloads will wait "
            "in vain.",
            "Download models and data on a login node first, and tell libraries so: "
            "`export HF_HUB_OFFLINE=1 WANDB_MODE=offline`.",
            ("cluster", cluster.title, ""),
        )
    ]


def _proxy(proxy: Proxy) -> Outcome:
    if not proxy.why:
        return fine(f"{proxy.variable} names {proxy.place}, which answers")
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"{proxy.variable} names {proxy.place}, and it does not answer: {proxy.why}.",
            f"`unset {proxy.variable}`, or load the site's module for its proxy.",
            ("proxy", proxy.place, ""),
        )
    ]
