"""What is known about functions and methods of libraries, from `known_functions.toml`."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import msgspec

from teho.config.toml import read_toml
from teho.patterns import lazy_pattern
from teho.source.parsed import Function, root_name

__all__ = [
    "SEEDED",
    "fits",
    "has_harmless_decorators",
    "has_position",
    "is_cached",
    "is_mutator",
    "is_pure_name",
    "is_stream",
    "is_view",
    "known",
    "may_be_trained",
]

_FILE = Path(__file__).with_name("known_functions.toml")
_CACHES = frozenset(("lru_cache", "cache", "cached", "cached_property", "memoize", "memoized"))
_HANDLES = lazy_pattern(
    r"(^|\.)(open\w*|File|ZipFile|\w*[rR]eader|Dataset|iterparse|BytesIO|StringIO|Fasta|"
    r"AlignmentFile)$"
)
"""Functions whose result has a position that each call moves, such as a file's."""
_STREAMS = lazy_pattern(
    r"((io|gzip|bz2|lzma|codecs|wave)\.)?open|os\.(fdopen|popen)|([\w.]*\.)?(\w*[rR]eader|iterparse|"
    r"BytesIO|StringIO|\w*TemporaryFile|islice|chain|cycle)|iter|map|filter|zip|enumerate|reversed"
)
"""Functions whose result is read from a position on: a file or an iterator."""
SEEDED = ("numpy.random.default_rng", "numpy.random.RandomState", "random.Random")
_TRAINED = lazy_pattern(
    r"\b(nn|keras|flax|equinox|haiku)\b|Parameter|Variable|requires_grad|Model\b"
)


class _Functions(msgspec.Struct, forbid_unknown_fields=True):
    impure: list[str]
    pure: list[str]
    loaders: list[str]
    readers: list[str]
    outside: list[str]
    elementwise: list[str]
    makers: list[str]


class _Methods(msgspec.Struct, forbid_unknown_fields=True):
    readers: frozenset[str]
    loaders: frozenset[str]
    outside: frozenset[str]
    pure: frozenset[str]
    views: frozenset[str]
    impure: frozenset[str]
    elementwise: frozenset[str]
    makers: frozenset[str]


class _Names(msgspec.Struct, forbid_unknown_fields=True):
    views: frozenset[str]
    pure: frozenset[str]
    decorators: frozenset[str]
    settings: frozenset[str]
    attributes: frozenset[str]


class _Known(msgspec.Struct, forbid_unknown_fields=True):
    functions: _Functions
    methods: _Methods
    names: _Names


@functools.cache
def known() -> _Known:
    """Return the content of `known_functions.toml`."""
    return msgspec.convert(read_toml(_FILE), _Known)


@functools.cache
def fits(kind: str, name: str) -> bool:
    """Return whether the dotted name of a function fits a list of `known_functions.toml`."""
    return _pattern(kind).fullmatch(name) is not None


@functools.cache
def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in getattr(known().functions, kind)))


def is_pure_name(name: str, call: ast.Call) -> bool:
    """Return whether a function of Python or of a library is pure."""
    if name == "open" or name.endswith((".ZipFile", "h5py.File", "lmdb.open", "tarfile.open")):
        return not _may_write(call)
    if "." not in name:
        return name in known().names.pure or name.endswith("Error")
    if name in SEEDED:
        return bool(call.args) and isinstance(call.args[0], ast.Constant)
    return not fits("impure", name) and fits("pure", name)


def _may_write(call: ast.Call) -> bool:
    mode = call.args[1] if len(call.args) > 1 else None
    mode = next((word.value for word in call.keywords if word.arg == "mode"), mode)
    if mode is None:
        return False
    text = str(mode.value) if isinstance(mode, ast.Constant) else "w"
    return any(letter in text for letter in "wax+")


def has_position(name: str) -> bool:
    """Return whether the result of a function has a position that each call moves."""
    return _HANDLES.search(name) is not None


def is_stream(name: str) -> bool:
    """Return whether each function that gets the result of a function moves its position."""
    return _STREAMS.fullmatch(name) is not None


def is_mutator(name: str) -> bool:
    """Return whether a method of an object of a library may change the object."""
    begins = ("add", "set", "insert", "remove", "update", "pop", "append", "extend", "clear", "fit")
    return name.startswith((*begins, "sort", "fill", "put", "resize")) or name.endswith("_")


def is_view(call: ast.Call) -> bool:
    """Return whether the result of a call may share the memory of an object, or be its part."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else root_name(call.func)
    return name in known().methods.views or name in known().names.views


def is_cached(function: Function) -> bool:
    """Return whether the body of a function runs only once for the same arguments."""
    return any(name in _CACHES for name in _names_of_decorators(function))


def _names_of_decorators(function: Function) -> list[str]:
    decorators = getattr(function.node, "decorator_list", ())
    targets = [one.func if isinstance(one, ast.Call) else one for one in decorators]
    return [one.attr if isinstance(one, ast.Attribute) else root_name(one) for one in targets]


def has_harmless_decorators(function: Function) -> bool:
    """Return whether a function changes as much, and as often, as its body says."""
    harmless = known().names.decorators | _CACHES
    return all(name in harmless for name in _names_of_decorators(function))


def may_be_trained(value: ast.expr) -> bool:
    """Return whether an expression may make parameters, which an optimizer changes unseen."""
    return _TRAINED.search(ast.unparse(value)) is not None
