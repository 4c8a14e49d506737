"""Arrow without pandas.

If pandas is installed, pyarrow imports it as soon as it converts one value of Python, only to ask
whether this value is from pandas. The import takes longer than all other imports of Teho, and
needs 40 MB of memory.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import NoReturn

__all__ = ["work_without_pandas"]


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise the error of a package that is not installed."""
        del path, target
        if fullname == "pandas":
            _refuse()


def _refuse() -> NoReturn:
    raise ModuleNotFoundError("this process works without pandas", name="pandas")


def work_without_pandas() -> None:
    """Let `import pandas` fail in this process. Only for a process that runs no code of users."""
    if not any(isinstance(one, _NoPandas) for one in sys.meta_path):
        sys.meta_path.insert(0, _NoPandas())
