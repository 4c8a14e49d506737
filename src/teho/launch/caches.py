"""Where a task's frameworks keep what they compile: on the node's own disk."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from teho.launch.gpus import Gpus
    from teho.launch.site_types import Generation, Site
    from teho.schedulers.task import Task

__all__ = ["Caches", "create", "find_caches"]


class Caches:
    """Folders for what frameworks compile, on the node's own disk."""

    __slots__ = ("directories", "links_to", "variables")

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.directories: list[str] = []
        """To create before the program starts, in this order."""
        self.links_to = ""
        """Folder whose entries are to be found in XDG_CACHE_HOME too; empty: none."""


def find_caches(
    site: Site | None,
    generation: Generation | None,
    gpus: Gpus,
    task: Task,
    environment: Mapping[str, str],
    unusable: Collection[str] = (),
) -> Caches:
    """Return where this task's frameworks keep their caches; what the user has set stays.

    A home on a network file system is slow for many small files, and ranks that compile at
    once wait for each other's locks. What is downloaded stays where it was (`HF_HOME`,
    `TORCH_HOME`), and what the user's old cache holds is found through links.

    Args:
        site: where this is.
        generation: variables of the site's containers.
        gpus: those that this task sees; without one, nothing is compiled that is worth keeping.
        task: this one.
        environment: of this process.
        unusable: folders that are not to be had.
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
    """Add the folders that no site tells of."""
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
    """Create the folders; return the first that is not to be had, and why."""
    for directory in caches.directories:
        why = _make_own(directory)
        if why:
            return {directory: why}
    if caches.links_to and "XDG_CACHE_HOME" in caches.variables:
        _link_all(caches.links_to, caches.variables["XDG_CACHE_HOME"])
    return {}


def _make_own(directory: str) -> str:
    """Create a folder of the user's own; return what is wrong, or an empty string.

    What another user has put into `/tmp` under our name could hold programs for us to run.
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
        return "it is not a folder"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "everybody may write there" if found.st_mode & stat.S_IWOTH else ""


def _link_all(source: str, target: str) -> None:
    """Make what is in one folder be found in another; what is there already stays."""
    try:
        names = os.listdir(source)  # noqa: PTH208 - pathlib loads late
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
