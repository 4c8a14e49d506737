"""Count the lines of code of `src/teho`: without docstrings, comments and blank lines.

`python benchmarks/count_code.py` prints a row for each package, and the sum.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "teho"
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER, tokenize.ENCODING,
}  # fmt: skip


def code_lines(text: str) -> int:
    """Return the number of lines that have code; a string that is a statement is no code."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def main() -> None:
    """Print the counts."""
    counts: Counter[str] = Counter()
    for path in sorted(SOURCES.rglob("*.py")):
        package = path.relative_to(SOURCES).parts[0]
        counts[package] += code_lines(path.read_text(encoding="utf-8"))
    for package, count in counts.most_common():
        print(f"{count:>7,}  {package}")
    print(f"{sum(counts.values()):>7,}  in all")


if __name__ == "__main__":
    main()
