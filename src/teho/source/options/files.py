"""All files of a program: those on its stacks, and those that they import."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Union

from teho.patterns import lazy_pattern
from teho.source.parsed import Parse, SourceFile, parsed

__all__ = ["OwnFiles", "Read"]

_ANY_NAME = "getattr()"
"""Word of a program that reads attributes whose names are not in its source."""
_MOST_FILES = 60
_MOST_BYTES = 1 << 20
_LONGEST_TEXT = 1000
_WORD = lazy_pattern(r"\w+")
_IMPORT = lazy_pattern(
    rb"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#;]*)"
    rb"|import[ \t]+([^\n#;]*))",
    re.MULTILINE,
)
_WITH_DOCUMENTATION = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Read = Callable[[str], Union[bytes, bool, None]]
"""Returns the content of a file. None: there is no such file, False: it cannot be read."""


class _Imported(NamedTuple):
    """An import of a module."""

    level: int
    """Number of dots before its name."""
    name: str
    parts: tuple[str, ...]
    """What is imported from it."""


class OwnFiles:
    """The files of a program.

    Args:
        on_stacks: the paths of its files that are on stacks.
        read: reads a file.
        installed: returns the names of the installed modules.
        parse: parses the content of a file.
    """

    def __init__(
        self,
        on_stacks: Sequence[str],
        read: Read,
        installed: Callable[[], frozenset[str]],
        parse: Parse = parsed,
    ) -> None:
        self._read, self._parse, self._installed = read, parse, installed
        self.texts: dict[str, bytes] = {}
        """The content of each file."""
        self.is_complete = True
        """Whether all files of the program could be read."""
        self._imports: dict[str, list[str]] = {}
        self._folders = [Path(path).parent for path in on_stacks]
        self._tried: dict[str, bytes | bool | None] = {}
        self._parsed: dict[str, SourceFile | None] = {}
        waiting, size = list(on_stacks), 0
        while waiting:
            path = waiting.pop(0)
            if path in self.texts:
                continue
            text = self._text(path)
            size += len(text) if isinstance(text, bytes) else 0
            is_small = len(self.texts) < _MOST_FILES and size < _MOST_BYTES
            if not isinstance(text, bytes) or not is_small:
                self.is_complete = False
                continue
            self.texts[path] = text
            self._imports[path] = list(self._imported_by(path, text))
            waiting += self._imports[path]

    def reached(self, paths: Iterable[str]) -> list[str]:
        """Return some files, and the files of the program that they import."""
        found: dict[str, None] = {}
        waiting = list(paths)
        while waiting:
            path = waiting.pop(0)
            if path in self.texts and path not in found:
                found[path] = None
                waiting += self._imports[path]
        return list(found)

    def parsed(self, path: str) -> SourceFile | None:
        """Return a parsed file; None if it cannot be parsed, or is no file of the program."""
        if path not in self._parsed:
            self._parsed[path] = self._parse(self.texts[path]) if path in self.texts else None
        return self._parsed[path]

    @cached_property
    def vocabulary(self) -> dict[str, frozenset[str]]:
        """All words of each file, also of its comments."""
        return {
            path: frozenset(_WORD.findall(text.decode("utf-8", "replace")))
            for path, text in self.texts.items()
        }

    @cached_property
    def all_parsed(self) -> dict[str, SourceFile] | None:
        """All files, parsed, by their paths; None if one of them is missing."""
        files = {path: file for path in self.texts if (file := self.parsed(path)) is not None}
        return files if self.is_complete and len(files) == len(self.texts) else None

    @cached_property
    def words(self) -> frozenset[str]:
        """All names in the program's files, all texts, and the words of these texts."""
        files = self.all_parsed or {}
        return frozenset(word for file in files.values() for word in _words(file))

    def _text(self, path: str) -> bytes | bool | None:
        if path not in self._tried:
            self._tried[path] = self._read(path)
        return self._tried[path]

    def _imported_by(self, path: str, text: bytes) -> Iterator[str]:
        for module in _imports(text):
            name = module.name.partition(".")[0]
            if not module.level and name in sys.stdlib_module_names:
                continue
            found = self._paths_of(module, Path(path).parent)
            yield from found
            self.is_complete &= bool(found) or name in self._installed()

    def _paths_of(self, module: _Imported, folder: Path) -> list[str]:
        """Return the program's files of a module, and of the modules that it imports from it."""
        for _ in range(module.level - 1):
            folder = folder.parent
        folders = [folder]
        if not module.level:
            folders += [*self._folders, *list(folder.parents)[: module.name.count(".") + 1]]
        for one in dict.fromkeys(folders):
            base = one.joinpath(*module.name.split(".")) if module.name else one
            names = [base.with_suffix(".py"), base / "__init__.py"] if module.name else []
            names += [base / f"{part}.py" for part in module.parts]
            if found := [str(each) for each in names if self._text(str(each)) is not None]:
                return found
        return []


def _imports(text: bytes) -> Iterator[_Imported]:
    for dots, name, parts, modules in _IMPORT.findall(text):
        names = [_first_word(one) for one in (parts or modules).split(b",")]
        if modules:
            yield from (_Imported(0, one, ()) for one in names if one)
        elif name or dots:
            yield _Imported(len(dots), name.decode(), tuple(filter(None, names)))


def _first_word(text: bytes) -> str:
    words = text.strip(b" \t\r\n()").split()
    return words[0].decode("utf-8", "replace") if words else ""


def _words(file: SourceFile) -> Iterator[str]:
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(file.module.node)
        if isinstance(node, _WITH_DOCUMENTATION)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(file.module.node):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case ast.ImportFrom(module=str(name)):
                yield from name.split(".")
            case ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in documentation:
                yield text
                yield from _WORD.findall(text[:_LONGEST_TEXT])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            is_name = len(node.args) > 1 and not isinstance(node.args[1], ast.Constant)
            if node.func.id == "getattr" and is_name:
                yield _ANY_NAME
