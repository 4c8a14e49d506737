"""Where a function uses the result of one of its statements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from teho.patterns import lazy_pattern
from teho.source.changes import stored_or_named
from teho.source.constants import number_of
from teho.source.evaluations import evaluates
from teho.source.outside import reads_files
from teho.source.parsed import dotted_name, root_name
from teho.source.program import Place
from teho.source.purity import Purity
from teho.source.rare import MOST, Rare, Rarity
from teho.source.uses import LOOPS, TRIES, Uses

__all__ = ["Branch", "ResultUses", "Search"]

_CONSUMERS = frozenset(
    ("list", "tuple", "set", "frozenset", "dict", "sum", "max", "min", "sorted", "any", "all")
)
_MAY_BE_STREAM = lazy_pattern("load|stream|iter|queue|gen|reader|batch|source|feed|file|lines")
"""Names of objects that may have fewer items after they were read."""


class Branch(NamedTuple):
    """A rare branch that uses a result."""

    node: ast.If
    rare: Rare
    is_skipped: bool
    """Whether the `if` continues with the next iteration: the code after it is the rare branch."""


class ResultUses:
    """Where the result of a statement is used.

    Args:
        statement: the statement.
        loops: the loops around it, the innermost first.
    """

    def __init__(self, statement: ast.stmt, loops: list[ast.AST]) -> None:
        self.loops = loops
        self.chain = [statement]
        """The statement, and those that only compute other results from its result."""
        self.branches: dict[ast.AST, Branch] = {}
        self.after: list[ast.AST] = []
        """Statements after the loop."""
        self.condition: ast.If | None = None
        """The `if` that has only these statements, if each branch is a rarer case of it."""

    @property
    def loop(self) -> ast.AST | None:
        """The innermost loop around the statement."""
        return self.loops[0] if self.loops else None

    @property
    def share(self) -> float:
        """Share of the results that the branches use at most, from 0 to 1."""
        return sum(one.rare.share for one in self.branches.values())


class Search:
    """Finds out where one function uses its results.

    Args:
        at: the function.
        purity: the program.
        uses: the uses in the function.
    """

    def __init__(self, at: Place, purity: Purity, uses: Uses) -> None:
        self._at, self._purity, self._uses = at, purity, uses
        self._open: list[ast.AST] = []

    def of(self, node: ast.expr) -> ResultUses | None:
        """Return where the result of an expression is used.

        None: the expression has another purpose than its result, or each iteration may need it.
        """
        statement = self._uses.statement(node)
        if not isinstance(statement, ast.stmt) or not self._gives_values(statement):
            return None
        found = ResultUses(statement, self._uses.loops_around(statement))
        self._open = []
        return found if self._add(statement, found) and found.share <= MOST else None

    def _gives_values(self, statement: ast.stmt) -> bool:
        """Return whether a statement changes only names, or a list with one used element."""
        if self._only_computes(statement):
            return True
        appended = self._appended(statement)
        return (
            appended is not None
            and not self._is_tried(statement)
            and all(self._is_free(one) for one in ast.walk(appended[1]))
        )

    def _appended(self, statement: ast.AST) -> tuple[str, ast.expr] | None:
        """Return the list and the value of `scores.append(score)`, if only `scores[-1]` is read.

        None: the statement does something else, or the program needs other elements of the list.
        """
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name) as own, attr="append"),
                    args=[ast.expr() as value],
                    keywords=[],
                )
            ):
                pass
            case _:
                return None
        function = self._at.function
        given = function.assigned.get(name, [])
        if len(given) != 1 or name in function.params or name in function.outer_names:
            return None
        if not isinstance(given[0].value, ast.List) or given[0].value.elts:
            return None
        if any(one.first <= given[0].line <= one.last for one in function.loops_at(own.lineno)):
            return None
        for node in function.nodes:
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                part = self._uses.parent(node)
                if node is not own and not (
                    isinstance(part, ast.Subscript)
                    and part.value is node
                    and ast.unparse(part.slice) == "-1"
                    and isinstance(part.ctx, ast.Load)
                ):
                    return None
        return name, value

    def _names(self, statement: ast.stmt) -> list[str]:
        """Return the names whose value a statement changes."""
        appended = self._appended(statement)
        return [appended[0]] if appended else [root_name(it) for it in stored_or_named(statement)]

    def _is_tried(self, statement: ast.stmt) -> bool:
        """Return whether a statement may only test whether it fails."""
        for outer in self._uses.around(statement):
            if isinstance(outer, LOOPS):
                return False
            if isinstance(outer, TRIES) and outer.handlers:
                return True
        return False

    def _only_computes(self, statement: ast.stmt) -> bool:
        """Return whether a statement gives names new values, and changes nothing else."""
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            return False
        if not all(isinstance(one, ast.Name) for one in stored_or_named(statement)):
            return False
        if self._is_tried(statement):
            return False
        return all(self._is_free(one) for one in ast.walk(statement.value))

    def _is_free(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        if not isinstance(node, ast.Call):
            return True
        is_kept = self._purity.keeps_all(node, self._at) or evaluates(node, self._at, self._purity)
        if not is_kept or self._consumes(node):
            return False
        # To read a file may move the position in the file.
        return not reads_files(node, self._at, self._purity.program)

    def _consumes(self, call: ast.Call) -> bool:
        """Return whether a call may read the items of an iterator, which then has fewer."""
        name = dotted_name(call.func)
        if name not in _CONSUMERS and not name.endswith(".fromiter"):
            return False
        return any(self._may_be_stream(one) for one in call.args)

    def _may_be_stream(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute):
            return _MAY_BE_STREAM.search(node.attr) is not None
        if not isinstance(node, ast.Name):
            return False
        given = self._at.function.assigned.get(node.id, [])
        is_made = any(isinstance(one.value, (ast.Call, ast.GeneratorExp)) for one in given)
        return is_made or _MAY_BE_STREAM.search(node.id) is not None

    def _add(self, statement: ast.stmt, found: ResultUses) -> bool:
        """Add the uses of a statement's results; return False if each iteration may need them."""
        self._open.append(statement)
        own = getattr(statement, "value", None) if self._appended(statement) else None
        for name in self._names(statement):
            uses = self._uses.of(statement, name)
            if uses is None:
                return False
            if own is not None:  # `scores.append` does not use the value
                uses = [one for one in uses if own not in self._uses.around(one)]
            if not all(self._add_use(one, statement, found) for one in uses):
                return False
        self._open.remove(statement)
        return True

    def _add_use(self, use: ast.Name, made: ast.stmt, found: ResultUses) -> bool:
        user = self._uses.statement(use)
        if not isinstance(user, ast.stmt) or user in self._open:
            return False  # it needs its own result of the iteration before
        if found.loop is not None and found.loop not in self._uses.loops_around(use):
            found.after.append(user)
            return True
        branch = self._branch(use, made) or self._rarer_branch(use, made, found)
        if branch is not None:
            found.branches[branch.node] = branch
            return True
        if user in found.chain:
            return True
        if self._uses.loops_around(user) != found.loops or not self._gives_values(user):
            return False
        if self._appended(made) is not None:
            return False  # the last element may be from the iteration before
        found.chain.append(user)
        return self._add(user, found)

    def _branch(self, use: ast.AST, made: ast.AST) -> Branch | None:
        """Return the rare branch that has a use of a value, after the statement that made it."""
        block = self._uses.block(made)
        rarity = Rarity(self._uses.loops_around(made), self._at, self._purity)
        found: Branch | None = None
        inner: ast.AST = use
        for outer in self._uses.around(use):
            if isinstance(outer, ast.If) and inner is not outer.test:
                rare = rarity.of(outer.test, is_true=inner in outer.body)
                found = Branch(outer, rare, is_skipped=False) if rare else found
            elif isinstance(outer, LOOPS):
                found = None  # each iteration of this loop may use the value
            if outer in block:
                before = block[: block.index(outer)]
                if made not in before:
                    return None  # the value is from the iteration before
                between = before[before.index(made) + 1 :]
                return found or next(_skipping(between, rarity), None)
            inner = outer
        return None

    def _rarer_branch(self, use: ast.AST, made: ast.stmt, found: ResultUses) -> Branch | None:
        """Return the branch that has a use, if its condition is a rarer case of that of `made`.

        After `if step % 7 == 0: score = f()`, this is the branch of `if step % 28 == 0:`.
        """
        outer = self._uses.parent(made)
        if not isinstance(outer, ast.If) or outer.orelse or outer.body != [made]:
            return None
        rarity = Rarity(self._uses.loops_around(outer), self._at, self._purity)
        often = rarity.of(outer.test)
        branch = self._branch(use, outer)
        if often is None or branch is None or branch.is_skipped:
            return None
        if use not in [inner for one in branch.node.body for inner in ast.walk(one)]:
            return None
        every, more = self._every(outer.test), self._every(branch.node.test)
        if every is None or more is None or every[0] != more[0] or more[1] % every[1]:
            return None
        found.condition = outer
        share = every[1] / more[1]
        return Branch(branch.node, Rare(share, branch.rare.is_sure), is_skipped=False)

    def _every(self, test: ast.expr) -> tuple[str, int] | None:
        """Return the counter and the number of `counter % number == 0`; None if it is not that."""
        match test:
            case ast.Compare(
                left=ast.BinOp(left=counter, op=ast.Mod(), right=every),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value=0)],
            ):
                number = number_of(every, self._at, self._purity)
                is_whole = number is not None and number.is_sure and number.value >= 1
                return (ast.dump(counter), int(number.value)) if number and is_whole else None
        return None


def _skipping(statements: Iterable[ast.AST], rarity: Rarity) -> Iterator[Branch]:
    """Yield the statements after which most iterations end: `if step % 100: continue`."""
    for one in statements:
        if isinstance(one, ast.If) and isinstance(one.body[-1], ast.Continue) and not one.orelse:
            rare = rarity.of(one.test, is_true=False)
            if rare:
                yield Branch(one, rare, is_skipped=True)
