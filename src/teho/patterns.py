"""Regular expressions that are compiled when they are used for the first time.

A command imports the patterns of many modules and uses few of them. To compile them all would take
a tenth of the time of `teho report`.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["lazy_pattern"]


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, but compile it when it is used for the first time.

    Args:
        text: the regular expression. A mistake in it is an error of its first use.
        flags: as for `re.compile`.
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))


class _LazyPattern:
    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of copy and pickle, which must not find methods here
            raise AttributeError(name)
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)  # the next use does not come here
        return found
