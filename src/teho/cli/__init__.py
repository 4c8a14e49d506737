"""The command `teho`: one thin file a command, loaded when it is called."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
