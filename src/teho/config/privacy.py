"""Which parts of the user's command and environment are stored: an allow-list, and masks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from teho.patterns import lazy_pattern

__all__ = [
    "MASK",
    "kept_environment",
    "masked_command",
    "masked_tags",
    "masked_text",
    "readable",
]

MASK = "•••"

# A word in the name of an option or variable whose value is a secret. Only whole words:
# `--tokenizer` and `--keyframes` are not secrets, and `--max-tokens` is a count.
_SECRET_WORD = (  # a pattern, not a secret
    r"(?:api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|ssh[-_]?key|"
    r"passwords?|passwd|passphrase|pwd|secrets?|token|credentials?|auth|authorization|"
    r"bearer|cookie|signature|key)"
)
_SECRET_NAME = lazy_pattern(rf"(?:.*[-_.])?{_SECRET_WORD}(?:[-_.]?\d+)?", re.IGNORECASE | re.DOTALL)
_URL_USER = lazy_pattern(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/\s:@]*):[^/\s]+@")
# `sig` is the signature in a shared link of Azure storage.
_URL_QUERY = lazy_pattern(
    rf"(?P<name>[?&](?:[\w.-]*[-_.])?(?:{_SECRET_WORD}|sig)=)[^&\s#'\"]+", re.IGNORECASE
)
_HEADER = lazy_pattern(
    r"(?P<name>(?:authorization|x-api-key|private-token)\s*:\s*(?:(?:bearer|basic|token)\s+)?)\S+",
    re.IGNORECASE,
)
# Keys that are recognised by their form.
_KNOWN_FORM = lazy_pattern(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|"
    r"sk-[\w-]{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|"
    r"eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
_ASSIGNMENT = lazy_pattern(r"(?P<name>-{0,2}[\w.-]+)(?P<sign>[=:])(?P<value>.+)", re.DOTALL)
_INNER_ASSIGNMENT = lazy_pattern(
    rf"(?P<name>(?<![\w-])(?:[-+]{{1,2}})?(?:\w+[-_.])*{_SECRET_WORD}"
    r"(?:[\"']?\]?\s*[=:]\s*|\s+))"
    r"(?P<value>'[^']*'|\"[^\"]*\"|[^\s'\",;&|}]+)",
    re.IGNORECASE,
)
_CONTROL = lazy_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_KEPT = lazy_pattern(
    r"SLURM_(?:JOB_ID|JOB_NAME|JOB_PARTITION|JOB_CPUS_PER_NODE|JOB_NUM_NODES|JOB_NODELIST|JOB_GPUS|JOB_START_TIME|"
    r"JOB_END_TIME|STEP_ID|STEP_GPUS|NTASKS|NTASKS_PER_NODE|TASKS_PER_NODE|NPROCS|PROCID|LOCALID|NODEID|CPUS_ON_NODE|"
    r"CPUS_PER_TASK|MEM_PER_(?:NODE|CPU|GPU)|GPUS|GPUS_ON_NODE|GPUS_PER_\w+|CLUSTER_NAME|"
    r"ARRAY_JOB_ID|ARRAY_TASK_ID|CPU_BIND|RESTART_COUNT)"
    r"|JOB_ID|NSLOTS|SGE_TASK_ID|QUEUE|PE|CC_CLUSTER"
    r"|(?:CUDA|ROCR|HIP)_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|GPU_DEVICE_ORDINAL"
    r"|(?:OMP|MKL|OPENBLAS|NUMEXPR|BLIS|VECLIB)_(?:MAX_|NUM_)?THREADS"
    r"|OMP_(?:PROC_BIND|PLACES)|GOMP_CPU_AFFINITY|KMP_AFFINITY"
    r"|NCCL_(?:DEBUG|SOCKET_IFNAME|NET_GDR_LEVEL|IB_DISABLE|P2P_DISABLE)"
    r"|RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|MASTER_PORT"
    r"|XLA_FLAGS|XLA_PYTHON_CLIENT_\w+|TF_\w+_OP_PARALLELISM_THREADS|PYTORCH_\w*ALLOC_CONF"
)


def kept_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may be stored, sorted by name, with secrets masked."""
    return {
        name: masked_text(value)
        for name, value in sorted(environment.items())
        if _KEPT.fullmatch(name)
    }


def readable(text: str) -> str:
    r"""Escape bytes that are not UTF-8, and control characters, as `\udcff` and `\x1b`.

    A command line may contain any byte, and must not control the terminal of a reader.
    """
    text = text.encode("utf-8", "backslashreplace").decode()
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def masked_text(text: str) -> str:
    """Mask probable secrets in a text: keys in URLs, in headers, and of known forms."""
    text = _URL_USER.sub(rf"\g<scheme>\g<user>:{MASK}@", readable(text))
    text = _URL_QUERY.sub(rf"\g<name>{MASK}", text)
    text = _HEADER.sub(rf"\g<name>{MASK}", text)
    return _KNOWN_FORM.sub(MASK, text)


def masked_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Return tags; the values of keys that name a secret are masked."""
    return {
        readable(key): MASK if _names_a_secret(key) else masked_text(value)
        for key, value in tags.items()
    }


def masked_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command; the values of options and assignments that name a secret are masked.

    Examples are `--token X`, `--token=X`, `PASSWORD=X` and `token:X`, also inside a script in one
    argument (`bash -c '…'`).
    """
    masked: list[str] = []
    value_is_secret = False
    for position, argument in enumerate(command):
        if value_is_secret and not argument.startswith("--"):
            masked.append(MASK)
            value_is_secret = False
            continue
        value_is_secret = bool(position and _is_option(argument) and _names_a_secret(argument))
        masked.append(_masked_argument(argument) if position else masked_text(argument))
    return tuple(masked)


def _names_a_secret(name: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name.lstrip("-"))  # hfToken -> hf-Token
    return _SECRET_NAME.fullmatch(words) is not None


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and len(argument) > 1


def _masked_argument(argument: str) -> str:
    match = _ASSIGNMENT.fullmatch(argument)
    if match and _names_a_secret(match["name"]):
        return f"{match['name']}{match['sign']}{MASK}"
    return _INNER_ASSIGNMENT.sub(rf"\g<name>{MASK}", masked_text(argument))
