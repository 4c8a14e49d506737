"""Finds code that gives each rank one block of neighbouring items.

If the items are sorted, for example by length, the ranks then have different amounts of work. The
stacks show this work, and a rule compares the ranks. Here, the source shows the line of the split.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.options.uses import assigned_value
from teho.source.parsed import Function, dotted_name
from teho.source.stack import Level

__all__ = ["find_block_of_rank", "is_rank", "is_world"]

_RANK = lazy_pattern(
    r"((\w+\.)*(get_rank|Get_rank|process_index)\(.*\)|int\(.*\b(RANK|SLURM_PROCID)\b.*\))"
)
_WORLD = lazy_pattern(
    r"((\w+\.)*(get_world_size|Get_size|process_count)\(.*\)"
    r"|int\(.*\b(WORLD_SIZE|SLURM_NTASKS)\b.*\))"
)
_RANKS = frozenset(("rank", "process_index", "global_rank", "world_rank"))
_WORLDS = frozenset(("world", "world_size", "num_processes", "n_ranks", "num_ranks", "nprocs"))
_SPLITS = frozenset(("array_split", "split", "tensor_split", "chunk"))


class _Block(NamedTuple):
    """An expression that cuts out the block of a rank."""

    node: ast.Subscript
    new: str
    """An expression with every n-th item instead."""


def find_block_of_rank(levels: Sequence[Level]) -> CostlyOption | None:
    """Return the expression in a function on a stack that cuts out the block of a rank.

    None: there is none, or there are several.

    Args:
        levels: the program's functions on the stack, the outermost first.
    """
    for level in levels:
        found = [
            block
            for node in level.function.nodes
            if isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and (block := _block(node, level.function)) is not None
        ]
        if len(found) == 1:
            (block,) = found
            text = level.file.text_of(block.node)
            at = Frame(level.frame.file, level.frame.function, block.node.lineno, text)
            words = {"new": block.new, "old": text}
            return CostlyOption(name="block_of_rank", at=at, lines=(), words=words)
    return None


def is_rank(node: ast.expr, function: Function) -> bool:
    """Return whether an expression is the number of the rank."""
    return _is(node, function, _RANK, _RANKS)


def is_world(node: ast.expr, function: Function) -> bool:
    """Return whether an expression is the number of ranks."""
    return _is(node, function, _WORLD, _WORLDS)


def _is(
    node: ast.expr, function: Function, pattern: re.Pattern[str], names: frozenset[str]
) -> bool:
    if isinstance(node, ast.Name):
        found = assigned_value(node.id, function)
        if found is not None:
            return pattern.fullmatch(ast.unparse(found[0])) is not None
        return node.id in names and node.id in function.params
    if isinstance(node, ast.Attribute):
        return node.attr in names
    return pattern.fullmatch(ast.unparse(node)) is not None


def _block(node: ast.Subscript, function: Function) -> _Block | None:
    """Return the block of `x[rank * n:(rank + 1) * n]` or `np.array_split(x, world)[rank]`."""
    match node:
        case ast.Subscript(value=ast.Call(func=func, args=[items, world]), slice=rank) if (
            dotted_name(func).rpartition(".")[2] in _SPLITS
        ):
            if is_rank(rank, function) and is_world(world, function):
                part = f"{ast.unparse(rank)}::{ast.unparse(world)}"
                return _Block(node, f"{ast.unparse(items)}[{part}]")
        case ast.Subscript(slice=ast.Slice(lower=ast.expr() as lower, upper=ast.expr(), step=None)):
            found = assigned_value(lower.id, function) if isinstance(lower, ast.Name) else None
            begin = found[0] if found is not None else lower
            world_name = _world(function)
            if not isinstance(begin, ast.BinOp) or not isinstance(begin.op, ast.Mult):
                return None
            for rank, size in ((begin.left, begin.right), (begin.right, begin.left)):
                is_size = isinstance(size, (ast.Name, ast.Attribute))
                if world_name and is_size and is_rank(rank, function):
                    end = f"{ast.unparse(size)} * {world_name}"
                    part = f"{ast.unparse(rank)}:{end}:{world_name}"
                    return _Block(node, f"{ast.unparse(node.value)}[{part}]")
    return None


def _world(function: Function) -> str:
    """Return the name of the number of ranks in a function; empty if it has none."""
    names = (*function.assigned, *function.params)
    return next((one for one in names if is_world(ast.Name(one), function)), "")
