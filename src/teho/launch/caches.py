"""Put the caches of a task's frameworks on the node's own disk."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from teho.launch.gpus import Gpus
    from teho.schedulers.site_types import Generation, Site
    from teho.schedulers.task import Task

__all__ = ["Caches", "create", "find_caches"]


class Caches:
    """Folders for compiled code of frameworks, on the node's own disk."""

    __slots__ = ("directories", "links_to", "variables")

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.directories: list[str] = []
        """Folders to create before the program starts, in this order."""
        self.links_to = ""
        """Folder whose entries get links in XDG_CACHE_HOME; empty: none."""


def find_caches(
    site: Site | None,
    generation: Generation | None,
    gpus: Gpus,
    task: Task,
    environment: Mapping[str, str],
    unusable: Collection[str] = (),
) -> Caches:
    """Return the cache folders of this task's frameworks. Variables of the user stay.

    A home on a network file system is slow for many small files. Ranks that compile at the same
    time wait for each other's locks. Downloads stay in their folder (`HF_HOME`, `TORCH_HOME`).
    Entries of the user's old cache are found through links.

    Args:
        site: facts about the cluster.
        generation: variables of the site's containers.
        gpus: the visible GPUs; without GPUs, a cache is not needed.
        task: this one.
        environment: of this process.
        unusable: folders that could not be created.
    """
    user = environment.get("USER") or environment.get("LOGNAME") or str(os.getuid())
    caches = Caches()
    if generation:
        filled = {"user": user, "node": str(task.node_rank), "job": task.job or "nojob"}
        for name, value in generation["variables"].items():
            caches.variables[name] = _filled(value, filled)
        caches.directories += [_filled(value, filled) for value in generation["directories"]]
    root, in_memory = _scratch(site, environment)
    root = f"{root}/teho-cache-{user}"
    if gpus.names and not any(f"{folder}/".startswith(f"{root}/") for folder in unusable):
        _add_own(caches, root, gpus, environment, in_memory=in_memory)
    caches.directories = [folder for folder in caches.directories if folder not in unusable]
    caches.variables = {
        name: value
        for name, value in caches.variables.items()
        if name not in environment and value not in unusable
    }
    return caches


def _add_own(
    caches: Caches, root: str, gpus: Gpus, environment: Mapping[str, str], *, in_memory: bool
) -> None:
    """Add the folders that no site documents."""
    wanted = {"TRITON_CACHE_DIR": "triton"}
    if gpus.variable == "CUDA_VISIBLE_DEVICES":
        wanted["CUDA_CACHE_PATH"] = "cuda"
    else:
        wanted["MIOPEN_USER_DB_PATH"] = wanted["MIOPEN_CUSTOM_CACHE_DIR"] = "miopen"
    for name, folder in wanted.items():
        caches.variables.setdefault(name, f"{root}/{folder}")
    home = environment.get("HOME", "")
    if home and not in_memory and "XDG_CACHE_HOME" not in environment:
        caches.links_to = f"{home}/.cache"
        caches.variables |= {
            "XDG_CACHE_HOME": f"{root}/xdg",
            "HF_HOME": f"{caches.links_to}/huggingface",
            "TORCH_HOME": f"{caches.links_to}/torch",
        }
    ours = (value for value in caches.variables.values() if value.startswith(f"{root}/"))
    caches.directories += [root, *sorted({*ours})]


def create(caches: Caches) -> dict[str, str]:
    """Create the folders. Return the first folder that fails, and the reason."""
    for directory in caches.directories:
        why = _make_own(directory)
        if why:
            return {directory: why}
    if caches.links_to and "XDG_CACHE_HOME" in caches.variables:
        _link_all(caches.links_to, caches.variables["XDG_CACHE_HOME"])
    return {}


def _make_own(directory: str) -> str:
    """Create a private folder of the user. Return the problem, or an empty string.

    A folder that another user made in `/tmp` could contain programs, which this job would run.
    """
    try:
        os.mkdir(directory, mode=0o700)  # noqa: PTH102 - pathlib loads late
    except FileExistsError:
        found = os.lstat(directory)
    except OSError as error:
        return error.strerror or str(error)
    else:
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return "the path is not a folder"
    if found.st_uid != os.geteuid():
        return "the folder belongs to another user"
    return "all users may write to the folder" if found.st_mode & stat.S_IWOTH else ""


def _link_all(source: str, target: str) -> None:
    """Link the entries of one folder into another one. Existing entries stay."""
    try:
        names = os.listdir(source)  # noqa: PTH208 - pathlib loads late
    except OSError:
        return
    for name in names:
        try:
            os.symlink(f"{source}/{name}", f"{target}/{name}")  # noqa: PTH211
        except OSError:
            # Another rank has made the link, or the entry exists.
            continue


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _scratch(site: Site | None, environment: Mapping[str, str]) -> tuple[str, bool]:
    """Return `(path of the node's own disk, whether it is in memory)`."""
    path = site["scratch"] if site else ""
    if path.startswith("$"):
        path = environment.get(path[1:], "")
    if path:
        return path.rstrip("/"), bool(site and site["scratch_in_memory"])
    for name in ("SLURM_TMPDIR", "LOCAL_SCRATCH", "TMPDIR"):
        if environment.get(name):
            return environment[name].rstrip("/"), False
    return "/tmp", False  # noqa: S108 - the folder in it is private, and is checked
