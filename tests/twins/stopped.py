"""What is stopped when its `with` block ends, however it ends."""

from __future__ import annotations

from types import TracebackType

__all__ = ["Stopped"]


class Stopped:
    """A context manager with a `stop` that may be called twice."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        raise NotImplementedError
