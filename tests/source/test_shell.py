"""Loops of shell scripts that start programs."""

from __future__ import annotations

import pytest

from teho.source.shell import shell_loops

READS = """#!/bin/bash
scale() { echo "$1"; }
awk 'BEGIN {
    for (i = 0; i < 26; i++) {
        printf "%d", i
    }
}' > hand.txt
while IFS= read -r line; do  # for each line
    sluice=$(echo "$line" | cut -d';' -f1)
    flow=$(echo "$line" | awk -F';' '{ while (x) y(z)
        done }')
    n=$((n + 1))
    if [ "$n" -gt 3 ]; then scale "$(date +%s)"; fi
done < hand.txt
sort hand.txt
"""


def loops(text):
    return [(one.line, one.text, one.commands) for one in shell_loops(text, "a.sh")]


def test_names_the_loop_and_its_programs():
    assert loops(READS) == [
        (8, "while IFS= read -r line", ((9, "cut"), (10, "awk"), (13, "date"))),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("for f in $(ls *.gz); do\n  gzip -d $f | wc -l\ndone", [((2, "gzip"), (2, "wc"))]),
        ("for a in 1 2; do\n  for b in 3 4; do sed -n 1p $b; done\ndone", [((2, "sed"),)]),
        ("while true; do LC_ALL=C sort x; done", [((1, "sort"),)]),
        ("until test -e x; do /usr/bin/sleep 1; done", [((1, "sleep"),)]),
    ],
)
def test_other_loops(text, found):
    assert [commands for _, _, commands in loops(text)] == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cut -f1 x\nawk '{ while (i < 3) { print } }' x",
        "for n in $(seq 1 26); do\n  total=$((total + n))\ndone",
        "while read -r line; do\n  echo ${line%%;*}\n  x=3\ndone < f",
        "cat <<'END'\nwhile read x; do\n  cut -f1\ndone\nEND",
        "# while read x; do cut -f1; done",
        "while read -r x; do",
        "done\ndone",
        "work() { :; }\nfor i in 1 2; do\n  work $i\ndone",
    ],
)
def test_look_alikes(text):
    assert loops(text) == []


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ('entry=$(sed -n "${n}p" "$work/sheets.txt")', "$work/sheets.txt"),
        ('grep "^$n;" data.csv | cut -d";" -f 2', "data.csv"),
        ('grep -c "$n" < ./data', "./data"),
        ("awk -F ';' -v key=\"$n\" '$1 == key' \"${table}\"", "${table}"),
        # ---- which look like it ----
        ('sed s/a/b/ "$n.txt"', ""),  # another file in each iteration
        ("file=$n.txt; grep a $file", ""),
        ("sed -i s/a/b/ data.csv", ""),  # it changes the file
        ("grep $n data.csv > new; cat new >> data.csv", ""),
        ("cut -d ';' -f 2", ""),
        ("sed 's/a/b/ # data.csv'", ""),
        ("grep a <<< data.csv", ""),
        ("grep a /dev/stdin", ""),
        ("cat data.csv", ""),  # each iteration may need the whole text
        ("wc -l data.csv", ""),
    ],
)
def test_files_that_each_iteration_reads_again(command, file):
    text = f"while read -r n; do\n  {command}\ndone < list.txt"
    (loop,) = shell_loops(text, "a.sh")
    assert loop.read_again == (((2, file),) if file else ())
