"""Count the patterns that the writing rules warn of: `python tests/words.py [PATH ...]` lists them.

Text is of four kinds: pages (Markdown, notebooks, the site's and the package's descriptions),
messages (strings with words, templates), docstrings, and comments. Code blocks, `code` and quoted
output are not read.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]

PATTERNS: dict[str, str] = {
    "where, as if": r"(?:^|[.:;]\s+|, |\band )[Ww]here\b(?! the time (?:went|goes)| to )",
    "alone, as only": r"\balone\b(?=\s*(?:[.,;:)]|$))",
    "is no, are no": r"(?<!there )\b(?:is|are|was|were) no\b(?! longer\b| more\b| later\b| less\b)",
    "nobody, nothing, whoever": r"\b(?:[Nn]obody|[Ww]hoever|[Ww]homever)\b"
    r"|(?:^|[.:;]\s+)Nothing\b|\bnothing (?:is|was|has|can|does|did|will|else)\b",
    "who, as whoever": r"\b(?:by|for|to|than|of|from) who\b",
    "anew": r"\banew\b",
    "stands in, lies in": r"\b(?:stands?|stood|lies|lay) (?:in|there|at|on|under|beside)\b",
    "tells, told, speaks": r"\b(?:tells|told|speaks?|spoke)\b|\b(?:the|its|their) word of\b"
    r"|\bby \S+ (?:\S+ )?(?:word|account)\b",
    "hold GPUs": r"\bhold(?:s|ing)? (?:the |a |its |\d+ )?(?:GPU|core|node)s?\b"
    r"|\b(?:GPU|core|node)s? (?:is|are|was|were) held\b|\bheld against\b",
    "pays, worth it": r"\bpays?(?: off)?\b(?! for\b| per\b)|\bworth it\b(?! [a-z])",
    "give back": r"\b(?:give|gives|gave|giving) (?:\S+ )?back\b",
    "as many as, that there are": r"\bas many as\b|\bthat there (?:is|are)\b"
    r"|\bso (?:many|long)\b",
    "one's own, that of": r"\bone's own\b|\b(?:that|those) of\b",
    "at the most": r"\bat the (?:most|least|latest)\b",
    "metaphors": r"\b(?:seats?|guests?|scenes?|(?:in|out of) sight|keeps? up|shuts? out)\b"
    r"|(?<!s )\bapart\b",
}
"""Name of a pattern, and the expression that finds it in one paragraph."""

ALLOWED: tuple[str, ...] = (
    # A question or a place.
    r"(?:\band|[:,]) where (?:the|it|they)\b",
    r"^Where the (?:time|figures)\b",
    r", where, and\b",
    r"\bwhere (?:it|they) (?:is|are|was|were)\b",
)
"""Passages in which a pattern may be found."""

_TEMPLATES = frozenset({".j2", ".html", ".js", ".sh"})
_READABLE = _TEMPLATES | {".py", ".md", ".ipynb", ".toml", ".yml"}
_KEYS_WITH_SENTENCES = frozenset(
    ("about", "action", "advice", "comment", "description", "label", "note", "notes", "purpose",
     "says", "text", "title", "what", "why")
)  # fmt: skip
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`")
_CODE = re.compile(r"```.*?```|~~~.*?~~~|``[^`]*``|`[^`\n]*`|<[^<>\n]*>", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


class Text(NamedTuple):
    """A passage of one kind, with its file and the line on which it begins."""

    kind: str
    path: Path
    line: int
    words: str


def texts(path: Path) -> Iterator[Text]:
    """Yield the passages of one file."""
    if path.suffix == ".py":
        yield from _python(path)
    elif path.suffix == ".md":
        yield from _markdown(path, path.read_text(), 1)
    elif path.suffix == ".ipynb":
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "markdown":
                yield from _markdown(path, "".join(cell["source"]), 1)
    elif path.suffix == ".toml":
        yield from _toml(path)
    elif path.suffix == ".yml":
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.match(r"(?:site_description|\s*- [A-Z][\w ]*): *(.*)", line):
                yield Text("pages", path, number, match[0])
    elif path.suffix in _TEMPLATES:
        yield from _template(path)


def _toml(path: Path) -> Iterator[Text]:
    content = path.read_text()
    kind = "pages" if path.name == "pyproject.toml" else "messages"
    for words in _sentences(tomllib.loads(content)):
        line = content.count("\n", 0, max(content.find(words.partition("\n")[0]), 0)) + 1
        for text in _markdown(path, words, line):
            yield text._replace(kind=kind)


def _sentences(value: object, key: str = "") -> Iterator[str]:
    """Yield the strings of a TOML file that a user reads."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _sentences(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _sentences(inner, key)
    elif isinstance(value, str) and key in _KEYS_WITH_SENTENCES:
        yield value


def _template(path: Path) -> Iterator[Text]:
    """Yield the sentences of scripts, pages and mails that have places for values."""
    content = path.read_text()
    if path.suffix == ".js":
        comments = re.finditer(r"/\*(.*?)\*/|//([^\n]*)", content, re.DOTALL)
    else:
        comments = re.finditer(
            r"\{#(.*?)#\}|^[ \t]*#(?![!{])([^\n]*)", content, re.DOTALL | re.MULTILINE
        )
    for match in comments:
        line = content.count("\n", 0, match.start()) + 1
        words = " ".join((match[1] or match[2] or "").split())
        # Users read the comments of their scripts.
        yield Text("comments" if path.suffix == ".js" else "messages", path, line, words)
    for match in _STRING.finditer(content):
        line = content.count("\n", 0, match.start()) + 1
        yield from _message(path, line, next(filter(None, match.groups()), ""))
    if path.suffix == ".html" or path.name.endswith(".txt.j2"):
        plain = re.sub(r"\{\{.*?\}\}", "X", re.sub(r"\{%.*?%\}", "", content))
        for number, line_of_text in enumerate(re.sub(r"<[^>]*>", "\t", plain).split("\n"), 1):
            for part in line_of_text.split("\t"):
                yield from _message(path, number, part)


def _markdown(path: Path, text: str, first: int) -> Iterator[Text]:
    # Code keeps its line breaks, so that the line numbers hold.
    text = _CODE.sub(lambda code: "\n" * code[0].count("\n") or "X", text)
    line = first
    for block in re.split(r"(\n\s*\n)", text):
        if block.strip() and not block.lstrip().startswith(("|--", "!!!")):
            for number, row in _rows(block):
                yield Text("pages", path, line + number, row)
        line += block.count("\n")


def _rows(block: str) -> Iterator[tuple[int, str]]:
    """Split a block into table rows and list items, each with the number of its first line."""
    start, held = 0, ""
    for number, line in enumerate(block.split("\n")):
        if re.match(r"\s*(?:[-*+|>]|\d+\.|#)", line) and held.strip():
            yield start, " ".join(held.split())
            start, held = number, ""
        held += " " + line.strip().lstrip("|>#-* ")
    if held.strip():
        yield start, " ".join(held.split())


def _python(path: Path) -> Iterator[Text]:
    source = path.read_text()
    documented = set()
    tree = ast.parse(source)
    in_f_string = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for entry in body if isinstance(body, list) else ():
            if isinstance(entry, ast.Expr) and isinstance(entry.value, ast.Constant):
                documented.add(id(entry.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [
                part.value if isinstance(part, ast.Constant) else "X"
                for part in node.values
                if isinstance(part, ast.FormattedValue) or isinstance(part.value, str)
            ]
            yield from _message(path, node.lineno, "".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in documented:
                yield from (
                    Text("docstrings", path, text.line, text.words)
                    for text in _markdown(path, node.value, node.lineno)
                )
            elif id(node) not in in_f_string:
                yield from _message(path, node.lineno, node.value)
    yield from _comments(path, source)


def _message(path: Path, line: int, text: str) -> Iterator[Text]:
    words = _CODE.sub("X", text)
    if len(_WORD.findall(words)) >= 3 and " " in words.strip():
        yield Text("messages", path, line, " ".join(words.split()))


def _comments(path: Path, source: str) -> Iterator[Text]:
    start, held, last = 0, "", -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or token.string.startswith("#!"):
            continue
        if token.start[0] != last + 1 and held:
            yield Text("comments", path, start, _CODE.sub("X", held))
            held = ""
        if not held:
            start = token.start[0]
        held += " " * bool(held) + token.string.lstrip("# ")
        last = token.start[0]
    if held:
        yield Text("comments", path, start, _CODE.sub("X", held))


def found(text: Text) -> list[tuple[str, str]]:
    """Return the patterns in a passage: the name of each, and the words around it."""
    words = text.words
    for allowed in ALLOWED:
        words = re.sub(allowed, lambda passage: "x" * len(passage[0]), words)
    return [
        (name, words[max(match.start() - 30, 0) : match.end() + 30])
        for name, pattern in PATTERNS.items()
        for match in re.finditer(pattern, words)
    ]


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files with text in them, below the paths that are given."""
    for path in paths:
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (
            file for file in below if file.suffix in _READABLE and "vendor" not in file.parts
        )


READ = [
    ROOT / name
    for name in (
        "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "pyproject.toml", "mkdocs.yml", "docs",
        "examples", "src",
    )
]  # fmt: skip
"""What is read if no path is given."""


def counted(paths: Iterable[Path]) -> tuple[list[str], dict[str, float]]:
    """Return a line for each pattern found, and for each kind the number in 10,000 words."""
    words: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    lines = []
    for path in files(paths):
        for text in texts(path):
            words[text.kind] += len(_WORD.findall(text.words))
            for name, around in found(text):
                hits[text.kind] += 1
                lines.append(f"{path}:{text.line}: {text.kind}: {name}: {around}")
    return lines, {kind: hits[kind] / count * 10_000 for kind, count in sorted(words.items())}


def main(arguments: list[str]) -> None:
    """Print each pattern found, then the number in 10,000 words of each kind."""
    lines, rates = counted([Path(name) for name in arguments] or READ)
    print(
        *lines, *(f"{kind}: {rate:.0f} in 10,000 words" for kind, rate in rates.items()), sep="\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
