"""The tables of a database that a program creates, and their indexes."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.database.tokens import Token, closing, parts_of, tokens
from teho.source.parsed import SourceFile
from teho.source.texts import UNKNOWN, made_text

__all__ = ["Table", "Tables"]

_STATEMENT = lazy_pattern(r"(?i)\b(create|alter)\b")
_SQLITE = frozenset(("sqlite3", "pysqlite3", "apsw", "aiosqlite"))
_OTHER_ROW_STORES = frozenset(
    ("psycopg", "psycopg2", "asyncpg", "pg8000", "pyodbc", "oracledb", "sqlalchemy")
)
_ROW_STORES = _SQLITE | _OTHER_ROW_STORES
"""Packages for databases that read a whole table if a condition has no index."""
_MYSQL = frozenset(("pymysql", "MySQLdb", "mysql", "mariadb", "aiomysql"))
"""The same. These databases make an index for each foreign key."""
_COLUMN_STORES = frozenset(
    ("duckdb", "clickhouse_driver", "clickhouse_connect", "pyspark", "snowflake", "databricks")
)
"""Packages for databases that find rows in other ways than by an index."""
_BEFORE = frozenset(
    ("OR", "REPLACE", "TEMP", "TEMPORARY", "UNLOGGED", "GLOBAL", "LOCAL", "UNIQUE", "MATERIALIZED")
)
"""Words between `CREATE` and `TABLE` or `INDEX`."""
_INDEXES = ("PRIMARY", "UNIQUE", "KEY", "INDEX")
"""Words with which a column or a constraint gets an index."""
_CONSTRAINTS = (*_INDEXES, "CONSTRAINT", "CHECK", "FOREIGN", "EXCLUDE")
_OTHER_WAYS = ("PARTITION", "INHERITS", "DISTRIBUTED", "CLUSTER", "ORDER", "USING")
"""Words of tables in which a database finds rows in other ways, too."""
_MAKES_INDEXES = frozenset(("create_index", "Index", "create_all"))
"""Functions of libraries that create indexes without a statement of the program."""
_MOST_FILES = 60


class Table(NamedTuple):
    """A table that the program creates."""

    made: Frame
    """The line that creates it."""
    columns: frozenset[str]
    """Empty: not known."""
    indexed: frozenset[str]
    """Columns with which an index may begin, and functions in its first part."""
    is_in_sqlite: bool = False


class Tables:
    """The tables in the source of a program.

    Args:
        files: path -> file, of the files that are read already.
        read: returns another file that the program may import; None: there is no such file, False:
            it cannot be read.
    """

    def __init__(
        self, files: dict[str, SourceFile], read: Callable[[str], SourceFile | bool | None]
    ) -> None:
        self._made: dict[str, Frame] = {}
        self._columns: defaultdict[str, set[str]] = defaultdict(set)
        self._indexed: defaultdict[str, set[str]] = defaultdict(set)
        self._foreign: defaultdict[str, set[str]] = defaultdict(set)
        """Columns of foreign keys."""
        self._everywhere: set[str] = set()
        """Columns that may be indexed in any table."""
        self._unclear: set[str] = set()
        """Tables of which an index may not be known."""
        self._is_clear = True
        """Whether all indexes are certainly in the source."""
        self._packages: set[str] = set()
        waiting, seen, count = list(files.items()), set(files), 0
        while waiting:
            path, file = waiting.pop()
            self._add_file(path, file)
            count += 1
            for other in _imported(path, file):
                found = read(other) if other not in seen else None
                seen.add(other)
                self._is_clear &= found is not False
                if isinstance(found, SourceFile):
                    waiting.append((other, found))
            if count + len(waiting) > _MOST_FILES:
                self._is_clear = False
                break

    def find(self, name: str) -> Table | None:
        """Return a table of which all indexes are known; None: there is no such table."""
        has_rows = bool(self._packages & (_ROW_STORES | _MYSQL))
        is_clear = self._is_clear and has_rows and not self._packages & _COLUMN_STORES
        if not is_clear or name not in self._made or name in self._unclear:
            return None
        indexed = self._indexed[name] | self._everywhere
        if self._packages & _MYSQL:
            indexed |= self._foreign[name]
        is_in_sqlite = not self._packages & (_OTHER_ROW_STORES | _MYSQL)
        columns = frozenset(self._columns[name])
        return Table(self._made[name], columns, frozenset(indexed), is_in_sqlite)

    def _add_file(self, path: str, file: SourceFile) -> None:
        for node in ast.walk(file.module.node):
            if isinstance(node, ast.Import):
                self._packages.update(one.name.partition(".")[0] for one in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._packages.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Call):
                self._add_call(node, path, file)
        for node in _texts(file.module.node):
            text = made_text(node, file.function_at(node.lineno))
            self._is_clear &= not text.endswith(".sql")
            if _STATEMENT.search(text):
                self._add_statements(tokens(text), _line(path, file, node))

    def _add_call(self, call: ast.Call, path: str, file: SourceFile) -> None:
        """Add the table that a call of pandas creates."""
        method = call.func
        name = method.attr if isinstance(method, ast.Attribute) else getattr(method, "id", "")
        self._is_clear &= name not in _MAKES_INDEXES
        if name != "to_sql" or not call.args:
            return
        words = {word.arg: word.value for word in call.keywords}
        table = made_text(call.args[0], file.function_at(call.lineno)).lower()
        exists, index = words.get("if_exists"), words.get("index")
        if not (isinstance(exists, ast.Constant) and exists.value == "append"):
            self._made.setdefault(table, _line(path, file, call))
            # Otherwise, pandas creates an index, for columns that are not clear here.
            if not (isinstance(index, ast.Constant) and index.value is False):
                self._unclear.add(table)

    def _add_statements(self, given: list[Token], made: Frame) -> None:
        begins = [place for place, one in enumerate(given) if one.is_word("CREATE", "ALTER")]
        for begin, end in zip(begins, [*begins[1:], len(given)], strict=True):
            is_new, rest = given[begin].is_word("CREATE"), given[begin + 1 : end]
            while rest and rest[0].is_word(*_BEFORE):
                rest = rest[1:]
            if not rest:
                continue
            kind, (name, rest) = rest[0], _name(rest[1:])
            if is_new and kind.is_word("INDEX"):
                self._add_index(given[begin + 1 : end])
            elif is_new and kind.is_word("TABLE") and name:
                self._create(name, rest, made)
            elif name:  # a view, or a changed table
                self._unclear.add(name)

    def _create(self, name: str, given: list[Token], made: Frame) -> None:
        self._made.setdefault(name, made)
        if given and given[0].is_word("AS"):
            return  # all columns of a query, and no index
        end = closing(given, 0) if given and given[0].text == "(" else None
        if end is None or any(one.is_word(*_OTHER_WAYS) for one in given[end + 1 :]):
            self._unclear.add(name)
            return
        for part in parts_of(given[1:end], ","):
            if not part or not part[0].is_name or any(one.text == UNKNOWN for one in part):
                self._unclear.add(name)
            else:
                self._add_part(name, part)

    def _add_part(self, table: str, part: list[Token]) -> None:
        """Add a column or a constraint of a table."""
        first, has_index = part[0], any(one.is_word(*_INDEXES) for one in part)
        if not first.is_word(*_CONSTRAINTS) or first.is_word("KEY", "INDEX"):
            # SQLite allows the names `key` and `index`.
            self._columns[table].add(first.name)
            self._indexed[table].update({first.name} if has_index else ())
        if first.is_word(*_CONSTRAINTS):
            is_foreign = any(one.is_word("FOREIGN") for one in part)
            kind = self._foreign if is_foreign else self._indexed
            kind[table].update(_first_columns(part) if has_index else ())

    def _add_index(self, given: list[Token]) -> None:
        """Add an index: `… ON table (columns)`."""
        place = next((place for place, one in enumerate(given) if one.is_word("ON")), None)
        name, rest = _name(given[place + 1 :]) if place is not None else (None, given)
        columns = _first_columns(rest)
        if any(one.text == UNKNOWN for one in given) and (place is None or not columns):
            self._is_clear = False
        elif name is None:
            self._everywhere |= columns
        elif columns:
            self._indexed[name] |= columns
        else:
            self._unclear.add(name)


def _line(path: str, file: SourceFile, node: ast.expr) -> Frame:
    return Frame(path, file.function_at(node.lineno).name or "<module>", node.lineno, "")


def _name(given: list[Token]) -> tuple[str | None, list[Token]]:
    """Return the name at the begin of some tokens, and the tokens after it."""
    while given and given[0].is_word("IF", "NOT", "EXISTS", "ONLY", "CONCURRENTLY"):
        given = given[1:]
    while len(given) > 2 and given[1].text == ".":  # the schema
        given = given[2:]
    return (given[0].name, given[1:]) if given and given[0].is_name else (None, given[1:])


def _first_columns(given: Sequence[Token]) -> set[str]:
    """Return the names in the first part of the first brackets; empty if they are not known."""
    begin = next((place for place, one in enumerate(given) if one.text == "("), None)
    end = closing(given, begin) if begin is not None else None
    if begin is None or end is None:
        return set()
    first = next(parts_of(given[begin + 1 : end], ","))
    is_known = not any(one.text == UNKNOWN for one in first)
    return {one.name for one in first if one.kind in ("word", "name")} if is_known else set()


def _texts(module: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that make texts, but not their parts, and no docstrings."""
    waiting = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node
        elif isinstance(node, ast.JoinedStr):
            yield node
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
            yield node
            operands: list[ast.AST] = [node]
            while operands:
                one = operands.pop()
                if isinstance(one, ast.BinOp):
                    operands += (one.left, one.right)
                elif not isinstance(one, (ast.Constant, ast.JoinedStr)):
                    waiting.append(one)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "format":
            yield node
            waiting += (*node.args, *node.keywords)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            waiting += ast.iter_child_nodes(node)


def _imported(path: str, file: SourceFile) -> Iterator[str]:
    """Yield the paths that the modules have which a file imports, if they are next to it."""
    folder = Path(path).parent
    for node in ast.walk(file.module.node):
        if isinstance(node, ast.Import):
            modules = [one.name for one in node.names]
            level = 0
        elif isinstance(node, ast.ImportFrom):
            begin = f"{node.module}." if node.module else ""
            modules = [begin.rstrip("."), *(f"{begin}{one.name}" for one in node.names)]
            level = node.level
        else:
            continue
        around = [folder, *folder.parents]
        folders = around[level - 1 : level] if level else around
        for module in filter(None, modules):
            parts = module.split(".")
            if not level and parts[0] in sys.stdlib_module_names:
                continue
            for one in folders[: len(parts) + 1]:
                yield str(one.joinpath(*parts).with_suffix(".py"))
                yield str(one.joinpath(*parts, "__init__.py"))
