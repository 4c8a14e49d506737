"""Where a task's frameworks keep what they compile: on the node's own disk."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teho.launch.gpus import Gpus
    from teho.launch.site import Generation, Site
    from teho.schedulers.task import Task

__all__ = ["Caches", "create", "find_caches"]


class Caches:
    """Folders for what frameworks compile, on the node's own disk."""

    __slots__ = ("directories", "links_to", "variables")

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.directories: list[str] = []
        """To create before the program starts."""
        self.links_to = ""
        """Folder whose entries are to be found in XDG_CACHE_HOME too; empty: none."""


def find_caches(
    site: Site | None, generation: Generation | None, gpus: Gpus, task: Task,
    environment: Mapping[str, str],
) -> Caches:
    """Return where this task's frameworks keep their caches; what the user has set stays.

    A home on a network file system is slow for many small files, and ranks that compile at
    once wait for each other's locks. What is downloaded stays where it was (`HF_HOME`,
    `TORCH_HOME`), and what the user's old cache holds is found through links.
    """
    user = environment.get("USER") or environment.get("LOGNAME") or str(os.getuid())
    caches = Caches()
    if generation:
        filled = {"user": user, "node": str(task.node_rank), "job": task.job or "nojob"}
        for name, value in generation["variables"].items():
            caches.variables[name] = _filled(value, filled)
        caches.directories += [_filled(value, filled) for value in generation["directories"]]
    if gpus.names:
        root, in_memory = _scratch(site, environment)
        root = f"{root}/teho-cache-{user}"
        wanted = {"TRITON_CACHE_DIR": "triton"}
        if gpus.variable == "CUDA_VISIBLE_DEVICES":
            wanted["CUDA_CACHE_PATH"] = "cuda"
        else:
            wanted["MIOPEN_USER_DB_PATH"] = wanted["MIOPEN_CUSTOM_CACHE_DIR"] = "miopen"
        for name, folder in wanted.items():
            caches.variables.setdefault(name, f"{root}/{folder}")
        if not in_memory and "XDG_CACHE_HOME" not in environment:
            old = f"{environment.get('HOME') or '/nonexistent'}/.cache"
            caches.variables |= {
                "XDG_CACHE_HOME": f"{root}/xdg",
                "HF_HOME": f"{old}/huggingface",
                "TORCH_HOME": f"{old}/torch",
            }
            caches.links_to = old
        ours = (value for value in caches.variables.values() if value.startswith(f"{root}/"))
        caches.directories += sorted({*ours})
    caches.variables = {n: v for n, v in caches.variables.items() if n not in environment}
    return caches


def create(caches: Caches) -> str:
    """Create the folders; return what is wrong, or an empty string.

    A folder in `/tmp` that another user has put there under our name is not used.
    """
    for directory in caches.directories:
        try:
            os.makedirs(directory, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib loads late
            if os.stat(directory).st_uid != os.getuid():  # noqa: PTH116
                return f"{directory}: it belongs to another user"
        except OSError as error:
            return f"{directory}: {error.strerror}"
    target = caches.variables.get("XDG_CACHE_HOME")
    if caches.links_to and target:
        _link_all(caches.links_to, target)
    return ""


def _link_all(source: str, target: str) -> None:
    """Make what lies in one folder be found in another; what is there already stays."""
    try:
        names = os.listdir(source)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        try:
            os.symlink(f"{source}/{name}", f"{target}/{name}")  # noqa: PTH211
        except OSError:
            # Another rank was first, or it is there.
            continue


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _scratch(site: Site | None, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Return the node's own disk, and whether it is memory in truth."""
    path = site["scratch"] if site else ""
    if path.startswith("$"):
        path = environment.get(path[1:], "")
    if path:
        return path.rstrip("/"), bool(site and site["scratch_in_memory"])
    for name in ("SLURM_TMPDIR", "LOCAL_SCRATCH", "TMPDIR"):
        if environment.get(name):
            return environment[name].rstrip("/"), False
    return "/tmp", False  # noqa: S108 - the folder below it is the user's own, and is checked
