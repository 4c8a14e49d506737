"""Finds options that make a part of a program's work expensive.

The stack shows a slow line, but the option is often on another line: `SVC(probability=True)` makes
`fit` slow. `costly_options.toml` has the options, and the conditions under which they cost time.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.source.gpu_calls.search import find_gpu_calls
from teho.source.options.around import is_around, words_of
from teho.source.options.files import OwnFiles
from teho.source.options.integers import IntegerProducts
from teho.source.options.lines import Lines
from teho.source.options.long_numbers import LongNumbers
from teho.source.options.numbers import NumberTypes
from teho.source.options.objects import ObjectArrays
from teho.source.options.results import Parents, parents_of, uses_only
from teho.source.options.table import Option, costly_options, ends, fits
from teho.source.options.unwritten_texts import find_unwritten_texts
from teho.source.options.uses import Use, uses_in, value_text
from teho.source.options.values import Value, value_of
from teho.source.parsed import SourceFile
from teho.source.program import Program

__all__ = ["OptionSearch"]

_LAST_WORDS = ends([name for one in costly_options() for name in (*one.calls, *one.others)])
"""Patterns for the last words of all names of the table."""
_LONGEST = 80
"""Maximum number of characters of an option."""


class _Given(NamedTuple):
    """An option in the source."""

    use: Use
    value: Value
    words: dict[str, str]


class OptionSearch:
    """Finds costly options in the files of a program.

    Args:
        own: the files.
    """

    def __init__(self, own: OwnFiles) -> None:
        self._own, self._program = own, Program(own.parsed)
        self._parents: dict[str, Parents] = {}
        self._found: dict[str, defaultdict[str, list[Use]]] = {}

    def found(self, stacks: Sequence[Sequence[Frame]], paths: Sequence[str]) -> list[CostlyOption]:
        """Return the costly options of a process.

        Args:
            stacks: its stacks, innermost frame first.
            paths: its files; the other files may show that an option is needed.
        """
        lines = Lines(stacks)
        found: list[CostlyOption] = []
        for option in costly_options():
            if option.numbers:
                found += self._of_numbers(option, lines)
            else:
                found += self._of_calls(option, lines, paths)
        found += find_gpu_calls(self._own, self._program, stacks, paths)
        found += find_unwritten_texts(self._own, self._program, stacks)
        return found

    def _of_calls(
        self, option: Option, lines: Lines, paths: Sequence[str]
    ) -> Iterator[CostlyOption]:
        uses = list(self._matching(option.calls, self._may_have(option, lines, paths)))
        given = [one for use in uses if (one := self._given(option, use)) is not None]
        if not given or not self._is_needless(option):
            return
        is_in_all = self._is_in_all(option, uses, given)
        for use, value, words in given:
            using = lines.of_use(option, use, self._parents_of(use))
            if not is_in_all:  # the time of other models is not due to the option
                using = lines.of_model(use, self._parents_of(use))
            if using or (is_in_all and not option.is_on_stacks):
                place = use.place.path, use.file, value.line, value.text
                at = _frame(*place)
                yield CostlyOption(name=option.name, at=at, lines=tuple(using), words=words)

    def _of_numbers(self, option: Option, lines: Lines) -> Iterator[CostlyOption]:
        names = (name for word in self._words for name in (word, f"numpy.{word}"))
        is_named = any(fits((option.numbers,), name) for name in names)
        # Comparisons and drawn numbers make integers without naming a type.
        is_named |= option.products and lines.has_text(option.lines)
        files = self._own.all_parsed if is_named else None
        if files is None:
            return
        if not self._is_needless(option):
            return
        kind: type[NumberTypes] = IntegerProducts if option.products else NumberTypes
        if option.widest:
            kind = LongNumbers
        if option.objects:
            kind = ObjectArrays
        types = kind(option.numbers, files, self._program)
        for origin, using in lines.of_numbers(types, files).items():
            at = _frame(origin.path, files[origin.path], origin.line, origin.text)
            yield CostlyOption(name=option.name, at=at, lines=tuple(using))

    def _may_have(self, option: Option, lines: Lines, paths: Iterable[str]) -> Iterator[str]:
        """Yield the files that may have an option."""
        needs_word = bool(option.keywords) and option.position is None
        for path in paths:
            if option.is_on_stacks and path not in lines.files:
                continue
            if not needs_word or not self._own.vocabulary[path].isdisjoint(option.keywords):
                yield path

    def _matching(self, names: Sequence[str], paths: Iterable[str]) -> Iterator[Use]:
        """Yield the uses of functions and settings in some files."""
        patterns = ends(names)
        last = frozenset(word for word in self._last_words if fits(patterns, word))
        for path in paths:
            if not last.isdisjoint(self._own.vocabulary[path]):
                for name, uses in self._uses(path).items():
                    if fits(names, name):
                        yield from uses

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset[str]().union(*self._own.vocabulary.values())

    @cached_property
    def _last_words(self) -> frozenset[str]:
        """The words of the program that may be the last words of names in the table."""
        return frozenset(filter(_is_last_word, self._words))

    def _uses(self, path: str) -> defaultdict[str, list[Use]]:
        """Return the uses in a file, by their names."""
        if path not in self._found:
            found = self._found[path] = defaultdict(list)
            file = self._own.parsed(path)
            for use in uses_in(file, path, self._program, _is_last_word) if file else ():
                found[use.name].append(use)
        return self._found[path]

    def _given(self, option: Option, use: Use) -> _Given | None:
        """Return the option in a call or setting; None if the call does not have it."""
        if any(word in use.keywords for word in option.without) or (option.without and use.is_open):
            return None
        value = value_of(option, use)
        if value is None:
            return None
        node = value.node if option.value and isinstance(value.node, ast.expr) else None
        text = value_text(node, use.place, self._program) if node is not None else ""
        if option.value and not fits((option.value,), text):
            return None
        parents = self._parents_of(use)
        if not is_around(option, use, parents, self._program):
            return None
        if not option.is_known_to_run and _is_conditional(use.node, parents):
            return None
        words = words_of(option, use, text, parents, self._program)
        is_needless = words is not None and uses_only(option, use, parents, self._program)
        return _Given(use, value, words or {}) if is_needless else None

    def _is_needless(self, option: Option) -> bool:
        """Return whether nothing in the program needs an option, as far as its files show it."""
        if not option.needs_all_files:
            return True
        return self._own.all_parsed is not None and not any(
            fits(option.unless, word) for word in self._own.words
        )

    def _is_in_all(self, option: Option, uses: Sequence[Use], given: Sequence[_Given]) -> bool:
        """Return whether all calls of a program have an option, so that no other call is slow."""
        with_option = {id(one.use.node) for one in given}
        others = (use for use in uses if id(use.node) not in with_option)
        has_other = any(value_of(option, use) is not None for use in others)
        if has_other and not option.is_known_to_run:
            return False
        all_calls = self._matching(option.others, self._own.texts) if option.others else ()
        return all(id(use.node) in with_option for use in all_calls)

    def _parents_of(self, use: Use) -> Parents:
        path = use.place.path
        if path not in self._parents:
            self._parents[path] = parents_of(use.file)
        return self._parents[path]


def _frame(path: str, file: SourceFile, line: int, text: str) -> Frame:
    function = file.function_at(line).name or "<module>"
    return Frame(path, function, line, " ".join(text.split())[:_LONGEST])


def _is_last_word(word: str) -> bool:
    """Return whether the name of a function or a setting in the table may end in a word."""
    return fits(_LAST_WORDS, word)


def _is_conditional(node: ast.AST, parents: Parents) -> bool:
    """Return whether code runs only under a condition, except in the file that is started."""
    while (outer := parents.get(node)) is not None:
        if isinstance(outer, (ast.If, ast.IfExp)) and node is not outer.test:
            is_start = "__name__" in ast.unparse(outer.test)
            if not is_start:
                return True
        node = outer
    return False
