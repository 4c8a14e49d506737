"""Which value an option has in a call or setting."""

from __future__ import annotations

import ast
from typing import NamedTuple, Union

from teho.source.options.table import Option
from teho.source.options.uses import Use, assigned_value, table_of

__all__ = ["Value", "value_of"]


class Value(NamedTuple):
    """The value of an option."""

    node: Union[ast.expr, ast.stmt]
    """The value; the call itself if the option is the call."""
    text: str
    """The option as a sentence has it: `probability=True`."""
    line: int


def value_of(option: Option, use: Use) -> Value | None:
    """Return the value of an option; None if the call does not have the option.

    If the value has a name that gets a value only once, the option is where it gets this value:
    `LEVEL = logging.DEBUG`, except if the table says otherwise.
    """
    words, file = dict(use.keywords), use.file
    if option.in_tables:
        for one in (*use.arguments, *use.keywords.values()):
            words = {**(table_of(one, use.place.function) or {}), **words}
    for word in option.keywords:
        if word in words:
            return _named(words[word], f"{word}={file.text_of(words[word])}", use, option)
    if option.position is not None and len(use.arguments) > option.position:
        argument = use.arguments[option.position]
        if option.here and option.position < 2 and not option.keywords:
            return Value(argument, file.text_of(use.node), use.node.lineno)
        is_whole = isinstance(use.node, ast.Assign) or option.position == 0
        return _named(argument, file.text_of(use.node if is_whole else argument), use, option)
    if option.keywords or option.position is not None:
        return None
    is_method = use.name.startswith(".") and not option.here
    text = f"{use.name}()" if is_method else file.text_of(use.node)
    return Value(use.node, text, use.node.lineno)


def _named(node: ast.expr, text: str, use: Use, option: Option) -> Value:
    if option.at_call:
        return Value(node, use.file.text_of(use.node), use.node.lineno)
    found = assigned_value(node.id, use.place.function) if isinstance(node, ast.Name) else None
    if found is None:
        return Value(node, text, node.lineno)
    return Value(node, use.file.line_text(found[0].lineno), found[0].lineno)
