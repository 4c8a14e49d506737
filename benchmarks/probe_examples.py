"""Run PyTorch's own small examples with the probe and without, and hold their output side by side.

    python benchmarks/probe_examples.py CHECKOUT --python PYTHON

CHECKOUT is a clone of github.com/pytorch/examples, PYTHON one that has what they need (torch,
torchvision, gymnasium, matplotlib). Their programs run as they are; MNIST, which they would
download, is generated in its own format. Numbers that change from run to run without the probe
count as noise; everything else must be the same with it.
"""

from __future__ import annotations

import argparse
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from common import SCRIPTS, say

EXAMPLES: dict[str, tuple[str, ...]] = {
    "dcgan": ("main.py", "--dataset", "fake", "--dry-run", "--outf", "{tmp}"),
    "fx/invert": ("invert.py",),
    "fx/primitive_library": ("primitive_library.py",),
    "fx/replace_op": ("replace_op.py",),
    "fx/subgraph_rewriter": ("subgraph_rewriter_basic_use.py",),
    "mnist": ("main.py", "--epochs", "1", "--dry-run", "--no-accel"),
    "mnist_hogwild": ("main.py", "--epochs", "1", "--dry-run"),
    "mnist_rnn": ("main.py", "--epochs", "1", "--dry-run"),
    "regression": ("main.py",),
    "reinforcement_learning": ("reinforce.py",),
    "siamese_network": ("main.py", "--epochs", "1", "--dry-run"),
    "time_sequence_prediction": ("train.py", "--steps", "1"),
    "vae": ("main.py", "--epochs", "1"),
    "word_language_model": ("main.py", "--epochs", "1", "--dry-run", "--data", "{text}"),
}
"""Name, whose first part is the folder, and its command."""
_BEFORE = {"time_sequence_prediction": ("generate_sine_wave.py",)}
_NUMBER = re.compile(r"[-+]?\d+(?:[.:]\d+)*(?:e[-+]?\d+)?")
_LONGEST_S = 240


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", help="names, separated by commas")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else list(EXAMPLES)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="teho-examples-") as name:
        folder = Path(name)
        _write_mnist(options.checkout / "data" / "MNIST" / "raw")
        _write_text(folder / "text")
        for example in wanted:
            try:
                verdict = _compare(options, example, folder)
            except subprocess.TimeoutExpired:
                verdict = f"cannot be judged: a run takes more than {_LONGEST_S} s"
            wrong += not verdict.startswith(("same", "cannot"))
            print(f"{example:26} {verdict}", flush=True)
    return int(wrong > 0)


def _compare(options: argparse.Namespace, example: str, folder: Path) -> str:
    directory = options.checkout / example.partition("/")[0]
    words = [
        word.format(tmp=folder, text=folder / "text") if word.startswith("{") else word
        for word in EXAMPLES[example]
    ]
    if example in _BEFORE:
        subprocess.run([options.python, *_BEFORE[example]], cwd=directory, check=True)
    plain = [options.python, *words]
    home = str(folder / "home")
    probed = [SCRIPTS / "teho", "run", "--quiet", "--", *plain]
    first, second = (_run(plain, directory, home) for _ in range(2))
    if first.returncode:
        last = first.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"cannot run here without the probe either: {''.join(last)}"
    ours = _run(probed, directory, home)
    if ours.returncode:
        return f"exit code {ours.returncode} instead of 0"
    if first.stdout == second.stdout:
        is_same, what = ours.stdout == first.stdout, "to the last digit"
    else:
        is_same = _shape(ours.stdout) == _shape(first.stdout)
        what = "but for numbers that change from run to run"
    return f"same, {what}" if is_same else "prints something else"


def _run(argv: list[object], directory: Path, home: str) -> subprocess.CompletedProcess[bytes]:
    say(" ".join(map(str, argv)))
    return subprocess.run(
        [str(word) for word in argv],
        cwd=directory,
        env={**os.environ, "TEHO_HOME": home},
        capture_output=True,
        timeout=_LONGEST_S,
        check=False,
    )


def _shape(output: bytes) -> list[str]:
    """Return the set of lines without their numbers: how often they come may hang on those."""
    return sorted({_NUMBER.sub("#", line) for line in output.decode(errors="replace").splitlines()})


def _write_mnist(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 3000), ("t10k", 1000)):
        pixels = bytes((7 * index) % 251 for index in range(count * 784))
        head = struct.pack(">IIII", 0x803, count, 28, 28)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(head + pixels)
        labels = bytes(index % 10 for index in range(count))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, count) + labels
        )


def _write_text(folder: Path) -> None:
    folder.mkdir()
    for name, count in (("train", 4000), ("valid", 1000), ("test", 1000)):
        words = " ".join(f"word{(index * index) % 97}" for index in range(count))
        (folder / f"{name}.txt").write_text(words + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
