"""Functions for the option lines of a script, for all schedulers."""

from __future__ import annotations

import math
import re

from teho.errors import InputError
from teho.model.cluster import Cluster
from teho.model.plan import Option
from teho.patterns import lazy_pattern

__all__ = [
    "ACCOUNT_PLACEHOLDER",
    "ARRAY_RANGE",
    "array_text",
    "disk_option",
    "gpus_option",
    "job_names",
    "lacks_account",
    "memory_text",
]

ARRAY_RANGE = lazy_pattern(r"(\d+)(?:-(\d+)(?::(\d+))?)?", re.ASCII)
"""One range of a job array: first, last, step."""
ACCOUNT_PLACEHOLDER = "<project>"
"""The account in the script of a job that needs one and has none. The scheduler refuses it."""
_JOB = lazy_pattern(r"[\w.+-]+", re.ASCII)


def gpus_option(option: Option, cluster: Cluster) -> str:
    """Return the option for the GPUs of each node; empty: the job has no GPUs."""
    if not option.gpus_per_node:
        return ""
    words = cluster.dialect.gpus
    if not option.gpu_is_typed:
        words = words.replace("{type}:", "")
    count = option.gpus_per_node if option.gpus_named is None else option.gpus_named
    return words.format(type=option.gpu_type, count=count)


def disk_option(option: Option, cluster: Cluster) -> str:
    """Return the option for the disk of each node; empty: the job requests no disk."""
    disk = cluster.local_disk
    if disk is None or not disk.option or option.local_disk_gib is None:
        return ""
    if not disk.per_core:
        return disk.option.format(gib=math.ceil(option.local_disk_gib))
    # Each core's part is rounded down: the sum must not exceed the node's disk.
    gib = round(option.local_disk_gib / (option.tasks_per_node * option.cpus_per_task), 6)
    return disk.option.format(gib=f"{math.floor(gib * 1000) / 1000:g}")


def lacks_account(option: Option) -> bool:
    """Return whether the site requires an account and the request has none."""
    return any(advice.kind == "account_missing" for advice in option.advice)


def memory_text(mib: int) -> str:
    """Write memory in GiB if it is a whole number of GiB, else in MiB."""
    return f"{mib}M" if mib % 1024 else f"{mib // 1024}G"


def job_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return job numbers unchanged.

    Raises:
        InputError: one of them is not a job number.
    """
    for name in names:
        if not _JOB.fullmatch(name):
            raise InputError(f"--after: {name!r} is not a job", "a job's number, such as 123456")
    return names


def array_text(text: str) -> str:
    """Return the indices of an array, in Slurm's form, unchanged.

    Raises:
        InputError: they do not have this form.
    """
    ranges, _, most = text.partition("%")
    if not all(map(ARRAY_RANGE.fullmatch, ranges.split(","))) or (
        "%" in text and not ARRAY_RANGE.fullmatch(most)
    ):
        raise InputError(f"--array: {text!r}", "a range such as 1-10, 0-15:4, 1,3,7 or 1-100%8")
    return text
