"""What the driver reports to root and to an ordinary user, how often, and beside `nvidia-smi`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from result import Row
from smi import dmon_figures, query_figures

from stage import LackingError, OutOfTimeError, Rows, Stage, missing_words

_NOBODY, _ORDINARY = 65534, "an ordinary user"
_DRIVER = Path(__file__).with_name("driver.py")


def measure(stage: Stage) -> None:
    """Do the pieces."""
    # If there is no GPU, `teho devices` says why.
    stage.piece("teho devices", lambda: _devices(stage), needs_gpu=False)
    stage.piece("functions of the driver's library", lambda: _calls(stage))
    stage.piece("how often each signal changes", lambda: _periods(stage), least_s=40)
    stage.piece("compared with nvidia-smi", lambda: _beside_smi(stage), least_s=40)


def _devices(stage: Stage) -> Rows:
    """Yield each signal of Teho's: for this user, and for an ordinary one."""
    if stage.no_gpu:
        yield Row("GPU", whose=_ORDINARY, why=stage.no_gpu)
        return
    own = {
        name: (None, why) if (why := missing_words(reading)) else (reading, "")
        for name, reading in stage.signals().items()
    }
    yield from _beside_nobody(stage, own, "signals")


def _calls(stage: Stage) -> Rows:
    """Yield each call of the library: what it answers to this user, and to an ordinary one."""
    yield from _beside_nobody(stage, _told(stage, "ask"), "ask")


def _beside_nobody(stage: Stage, own: dict[str, tuple[Any, str]], what: str) -> Rows:
    """Yield a row for each value and error of this user, beside those of an ordinary one."""
    others: dict[str, tuple[Any, str]] = {}
    why_not = "not asked, because this user is an ordinary user"
    if stage.result.machine["user"] == "root":
        for folder in (stage.work, stage.work.parent):
            folder.chmod(0o755)
        try:
            others = _told(stage, what, _NOBODY)
        except (RuntimeError, OutOfTimeError) as error:
            why_not = f"not known: {error}"
    for name, (value, error) in own.items():
        lacks = "the driver gave no answer to this user" if others else why_not
        other, other_error = others.get(name, (None, lacks))
        whys = {"": error, f"{_ORDINARY}: ": other_error}
        why = "; ".join(f"{who}{text}" for who, text in whys.items() if text)
        yield Row(name, teho=value, other=other, whose=_ORDINARY, why=why)


def _told(stage: Stage, *words: object) -> dict[str, tuple[Any, str]]:
    """Return value and error by name, as the driver's library or Teho's source of it says."""
    told = json.loads(stage.run([sys.executable, _DRIVER, *map(str, words)], limit_s=60))
    if isinstance(told, list):
        return {name: (value, error) for name, value, error in told}
    return {
        name: (None, value[0]) if isinstance(value, list) else (value, "")
        for name, value in told.items()
    }


def _periods(stage: Stage) -> Rows:
    """Yield how often each signal changes while the GPU works."""
    seconds = stage.seconds(5.0, 0.6)
    with loaded(stage):
        told = json.loads(stage.run([sys.executable, _DRIVER, "periods", str(seconds)], limit_s=90))
    for name, figures in told.items():
        takes = f"a reading takes {figures['read_ms']:.3g} ms" if "read_ms" in figures else ""
        if "median_ms" not in figures:
            yield Row(name, "ms", why="; ".join(filter(None, (figures["why"], takes))))
            continue
        middle = f"middle half of the times: {figures['low_ms']:.3g} to {figures['high_ms']:.3g} ms"
        why = f"{middle}; {figures['changes']} changes; {takes}"
        yield Row(name, "ms", teho=round(figures["median_ms"], 2), why=why)


def _beside_smi(stage: Stage) -> Rows:
    """Yield Teho's figures under a steady load, beside two answers of nvidia-smi."""
    with loaded(stage):
        query = query_figures(stage.run(["nvidia-smi", "-q", "-x"], limit_s=60))
        told = json.loads(stage.teho("devices", "--format", "json", limit_s=60))
        dmon = dmon_figures(stage.run(["nvidia-smi", "dmon", "-c", "5", "-s", "pucmt"], limit_s=60))
    source = next(one for one in told["gpus"] if one["devices"])
    signals = dict(next(iter(source["signals"].values())))
    for whose, figures in (("nvidia-smi -q", query), ("nvidia-smi dmon", dmon)):
        for name, other in figures.items():
            is_number = not isinstance(other, str)
            reading = signals.get(name)
            why = missing_words(reading)
            yield Row(
                name,
                teho=None if why else reading,
                other=other if is_number or name not in signals else None,
                whose=whose,
                why="; ".join(filter(None, (why, "" if is_number else f"{whose}: {other}"))),
            )


@contextmanager
def loaded(stage: Stage) -> Iterator[None]:
    """Keep the GPU busy while the caller measures.

    Raises:
        LackingError: the program that keeps it busy has ended; the text says why.
    """
    argv = stage.program("workload", "matmul-bf16", 600)
    with subprocess.Popen(
        argv, env=stage.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline().startswith("begins"):
                _, errors = process.communicate(timeout=10)
                last = (errors.strip() or "no error").splitlines()[-1]
                raise LackingError(f"the program that keeps the GPU busy ended: {last}")
            time.sleep(stage.seconds(3.0, 0.2))
            yield
        finally:
            process.kill()
