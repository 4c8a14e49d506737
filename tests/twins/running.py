"""The base of everything here that runs for the length of a `with`."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Running"]

_Self = TypeVar("_Self", bound="Running")


class Running:
    """Started at the beginning of a `with`; stopped at its end, and if the start fails."""

    def start(self) -> None:
        """Start its processes."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the processes that were started."""
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:  # noqa: PYI019 - Self is not in Python 3.10
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
