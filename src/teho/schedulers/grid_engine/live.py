"""Ask the running Grid Engine which queues start jobs, and what the user may use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from teho.errors import SchedulerError
from teho.model.member import Association, Live
from teho.schedulers.grid_engine.answers import Settings, listed, settings_of
from teho.schedulers.inventory import PATIENCE_S, Ask, answer_now

__all__ = ["grid_engine_live"]

_AT_ONCE = 8
# qstat(1), -f: disabled, disabled by a calendar, error, unreachable, orphaned, in conflict.
_LETTERS = {"DISABLED": frozenset("dDEuoc"), "SUSPENDED": frozenset("sSC")}
_STATES_COLUMN = 5


def grid_engine_live(ask: Ask, *, user: str, groups: Sequence[str]) -> Live:
    """Ask for the queues' states, and for the user's lists and projects, in parallel.

    A fact is None if its answer does not come in time.

    Args:
        ask: runs a command that only asks.
        user: the user whose lists and projects are requested.
        groups: the Unix groups of the user.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        states = pool.submit(_states, ask)
        default = pool.submit(_settings, ask, "-suser", user)
        lists = _all_of(ask, pool, "-sul", "-su")
        projects = _all_of(ask, pool, "-sprjl", "-sprj")
    own = None if lists is None else _lists_of(lists, user, groups)
    return Live(
        states=states.result(),
        user=user,
        groups=tuple(groups),
        user_lists=own,
        default_account=_default_project(default.result()),
        associations=None
        if own is None or projects is None
        else tuple(
            Association(account=name)
            for name, settings in projects.items()
            if _admits(settings, own)
        ),
    )


def _settings(ask: Ask, *argv: str) -> Settings | None:
    text = answer_now(ask, "qconf", *argv)
    return None if text is None else settings_of(text)


def _all_of(
    ask: Ask, pool: ThreadPoolExecutor, names_option: str, option: str
) -> dict[str, Settings] | None:
    """Return every object of a type; None: one of them cannot be read."""
    try:
        done = ask(("qconf", names_option), timeout_s=PATIENCE_S, repeat=False)
    except SchedulerError:
        return None
    # If no object of this type exists, qconf prints so and fails.
    names = done.stdout.split() if done.exit_code == 0 else []
    if done.exit_code and "no " not in (done.stdout + done.stderr).lower():
        return None
    answers = pool.map(lambda name: _settings(ask, option, name), names)
    found = {name: one for name, one in zip(names, answers, strict=True) if one is not None}
    return found if len(found) == len(names) else None


def _lists_of(lists: dict[str, Settings], user: str, groups: Iterable[str]) -> tuple[str, ...]:
    own = {user, *(f"@{group}" for group in groups)}
    return tuple(
        name for name, settings in lists.items() if own & {*listed(settings.get("entries", ""))}
    )


def _default_project(settings: Settings | None) -> str:
    names = listed((settings or {}).get("default_project", ""))
    return names[0] if names else ""


def _admits(project: Settings, own: Sequence[str]) -> bool:
    allowed, denied = listed(project.get("acl", "")), listed(project.get("xacl", ""))
    return (not allowed or bool({*own} & {*allowed})) and not {*own} & {*denied}


def _states(ask: Ask) -> dict[str, str] | None:
    """Return each queue's state. A queue is up if one of its hosts starts jobs."""
    text = answer_now(ask, "qstat", "-f")
    if text is None:
        return None
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < _STATES_COLUMN or "@" not in words[0] or words[2].count("/") != 2:
            continue
        letters = {*words[_STATES_COLUMN]} if len(words) > _STATES_COLUMN else set[str]()
        state = next((state for state, own in _LETTERS.items() if letters & own), "UP")
        found.setdefault(words[0].partition("@")[0], set()).add(state)
    return {
        queue: "UP" if "UP" in states else min(states) for queue, states in found.items()
    } or None
