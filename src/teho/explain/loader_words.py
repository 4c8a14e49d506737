"""The call of a data loader with other settings, in the words of the library that made it."""

from __future__ import annotations

from teho.model.watched import Loader

__all__ = ["grain_code", "loader_call"]

_GRAIN = {"num_workers": "worker_count", "prefetch_factor": "worker_buffer_size"}
"""Setting of PyTorch -> argument of `grain.DataLoader` with the same meaning."""
_GRAIN_OPTIONS = {"num_workers": "num_workers", "prefetch_factor": "per_worker_buffer_size"}
"""The same for `grain.MultiprocessingOptions`."""


def loader_call(loader: Loader, **settings: object) -> str:
    """Return the call of a loader with these settings, and its line.

    Args:
        loader: of any library.
        settings: by their names in PyTorch. A setting that the library lacks is left out; at least
            one must be known to it.
    """
    made_at = loader.made_at
    at = f" in {made_at.short_place}" if made_at else ""
    if loader.library != "grain":
        return f"`DataLoader(…, {_arguments(settings)})`{at}"
    place = "" if loader.settings.get("api") == "DataLoader" else " as the last stage"
    return f"`{grain_code(loader, **settings)}`{place}{at}"


def grain_code(loader: Loader, **settings: object) -> str:
    """Return the code of a Grain pipeline with these settings, named as for `loader_call`."""
    if loader.settings.get("api") == "DataLoader":
        return f"grain.DataLoader(…, {_arguments(_renamed(settings, _GRAIN))})"
    options = _arguments(_renamed(settings, _GRAIN_OPTIONS))
    return f".mp_prefetch(grain.MultiprocessingOptions({options}))"


def _renamed(settings: dict[str, object], names: dict[str, str]) -> dict[str, object]:
    return {names[name]: value for name, value in settings.items() if name in names}


def _arguments(settings: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
