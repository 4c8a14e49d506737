"""Finds the loops of a shell script that start programs in each iteration."""

from __future__ import annotations

import re
from collections.abc import Iterator

from teho.model.run import ShellLoop
from teho.patterns import lazy_pattern

__all__ = ["shell_loops"]

_BUILT_IN = frozenset(
    (
        ":", ".", "[", "[[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd",
        "command", "compgen", "continue", "coproc", "declare", "dirs", "disown", "do", "done",
        "echo", "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "false", "fc",
        "fg", "fi", "for", "function", "getopts", "hash", "help", "history", "if", "in", "jobs",
        "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read",
        "readarray", "readonly", "return", "select", "set", "shift", "shopt", "source", "suspend",
        "test", "then", "time", "times", "trap", "true", "type", "typeset", "ulimit", "umask",
        "unalias", "unset", "until", "wait", "while",
    )
)  # fmt: skip
"""Commands that the shell executes itself, and its words."""
_QUOTED = lazy_pattern(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|(?<![\w$])#[^\n]*", re.DOTALL)
_HERE = lazy_pattern(r"<<-?\s*[\\'\"]?(\w+)['\"]?[^\n]*\n.*?^\s*\1\s*$", re.DOTALL | re.MULTILINE)
_ARITHMETIC = lazy_pattern(r"\$?\(\((?:[^()]|\([^()]*\))*\)\)")
_FUNCTION = lazy_pattern(r"(?:^|\s)([\w-]+)\s*\(\)|\bfunction\s+([\w-]+)")
_WORD = lazy_pattern(r"(?:(?<=[\n;|&({`])|^|\b(?:do|then|else|in)\s)[ \t]*(while|until|for|done)\b")
_COMMAND = lazy_pattern(
    r"(?:[\n|;&(`]|^|\bdo\b)[ \t]*(?:(?:do|then|else|elif|if|while|until|time|!|\{)[ \t\n]+)*"
    r"(?:[A-Za-z_]\w*=[^\s$(]*[ \t]+)*([A-Za-z_./][\w./+-]*)(?![\w=(]*[=(])"
)
_DO = lazy_pattern(r"\bdo\b")
_END = lazy_pattern(r"[\n;|&)`>]")
"""Where the words of a command end, in a script whose quoted texts are blanked."""
_ARGUMENT = lazy_pattern(r"<+|(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s<])+")
_SET = lazy_pattern(
    r"\b(\w+)\+?=|\bfor\s+(\w+)|\b(?:read|readarray|mapfile)((?:[ \t]+(?!<)[^\s;|&<]+)+)"
)
_SELECT = frozenset(("sed", "awk", "gawk", "mawk", "grep", "egrep", "fgrep"))
"""Programs that select lines: the first argument says which, and the files follow."""
_WITH_VALUE = frozenset(("-F", "-v", "-f", "-e", "-m", "-A", "-B", "-C"))
"""Options of these programs whose value may be the next argument."""
_FILE = lazy_pattern(r"(?=.*[$/.])(?:[\w./+-]|\$\w+|\$\{\w+\})+")
_NO_FILES = ("/dev/", "/proc/", "/sys/")
_LONGEST = 64 * 1024
_LONGEST_TEXT = 80
_MOST_LOOPS, _MOST_COMMANDS = 16, 8


def shell_loops(text: str, file: str) -> tuple[ShellLoop, ...]:
    """Return the innermost loops of a script that start programs, in their order.

    Text in quotes is left out, so a loop of `awk` is no loop of the script.

    Args:
        text: the script.
        file: name of its file.
    """
    if len(text) > _LONGEST:
        return ()
    plain = _QUOTED.sub(_without_words, _HERE.sub(_blank, text))
    plain = _ARITHMETIC.sub(_blank, plain)
    own = {name for pair in _FUNCTION.findall(plain) for name in pair if name}
    lines = text.split("\n")
    found = []
    for begin, end in _innermost(plain):
        first = plain.count("\n", 0, begin) + 1
        body = _DO.search(plain, begin, end) if plain.startswith("for", begin) else None
        again = body.start() if body else begin  # the words of `for` are computed once
        commands, read_again = [], []
        for match in _COMMAND.finditer(plain, again, end):
            name = match[1].rpartition("/")[2]
            if name and name not in _BUILT_IN and name not in own and not name.startswith("."):
                line = plain.count("\n", 0, match.start(1)) + 1
                commands.append((line, name))
                stop = _END.search(plain, match.end(1), end)
                words = text[match.end(1) : stop.start() if stop else end]
                file_read = _read_whole(name, words)
                if file_read and _stays(file_read, text[begin:end]):
                    read_again.append((line, file_read))
        if commands:
            text_of_loop = lines[first - 1].strip()
            found.append(
                ShellLoop(
                    file=file,
                    line=first,
                    text=text_of_loop.partition(";")[0].strip()[:_LONGEST_TEXT],
                    commands=tuple(commands[:_MOST_COMMANDS]),
                    read_again=tuple(read_again[:_MOST_COMMANDS]),
                )
            )
    return tuple(found[:_MOST_LOOPS])


def _read_whole(name: str, text: str) -> str:
    """Return the last file of which a command selects lines; empty if it reads none.

    Args:
        name: the command.
        text: its arguments, as the script has them.
    """
    words = _ARGUMENT.findall(text)
    if name not in _SELECT or not {"\\", "-i"}.isdisjoint(words):
        return ""
    if "<" in words[:-1]:
        return _plain(words[words.index("<") + 1])
    if any(word.startswith("<") for word in words):
        return ""  # a text in the script
    given = [
        word
        for before, word in zip(["", *words[:-1]], words, strict=True)
        if not word.startswith("-") and before not in _WITH_VALUE
    ]
    return _plain(given[-1]) if given[1:] else ""


def _plain(word: str) -> str:
    """Return the name of a file without its quotes; empty if it is not one file of a disk."""
    name = word.strip("\"'")
    is_file = _FILE.fullmatch(name) is not None and not name.startswith(_NO_FILES)
    return name if is_file else ""


def _stays(file: str, loop: str) -> bool:
    """Return whether a loop neither changes the name of a file, nor writes this file."""
    changed = {word for found in _SET.findall(loop) for one in found for word in one.split()}
    names = re.findall(r"\$\{?(\w+)", file)
    is_written = re.search(rf">\s*[\"']?{re.escape(file)}(?![\w.])", loop) is not None
    return changed.isdisjoint(names) and not is_written


def _blank(match: re.Match[str]) -> str:
    return "".join("\n" if one == "\n" else " " for one in match[0])


def _without_words(match: re.Match[str]) -> str:
    """Return a text in quotes without its words; a command in double quotes stays."""
    if match[0].startswith('"') and "$(" in match[0]:
        return " " + match[0][1:-1] + " "
    return _blank(match) if match[0][0] == "#" else re.sub(r"[^\n]", '"', match[0])


def _innermost(plain: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each loop without another loop in it."""
    open_loops: list[tuple[int, bool]] = []
    for match in _WORD.finditer(plain):
        if match[1] != "done":
            open_loops.append((match.start(1), True))
        elif open_loops:
            begin, is_innermost = open_loops.pop()
            if is_innermost:
                yield begin, match.start(1)
            open_loops = [(place, False) for place, _ in open_loops]
