"""A program that exists as a formula: its pace, by the settings that are imposed on it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from teho.experiment.attempt import Attempt
from teho.experiment.pace import Pace
from teho.model.stack import Frame
from teho.model.tuned import Settings
from teho.model.watched import GivenBatch, Loader, WatchedProcess

WINDOW_S = 5.0
RUN_S = 10.0
MADE_AT = Frame("/home/me/train.py", "main", 31, "DataLoader(data, batch_size=16)")


class Simulated:
    """Runs a simulated program for `tune`, with a simulated clock.

    Args:
        speed: steps a second by the settings.
        noise: relative standard deviation from run to run.
        settings: the loader's in the program as it is.
        torch: what the probe notes of PyTorch.
        failing: returns why a run with these settings fails; empty: it does not.
        batches_per_step: how many batches the loader gave for each step; 0: not looked at.
        made_at: where the program makes its loader.
    """

    def __init__(
        self,
        speed: Callable[[Settings], float],
        *,
        noise: float = 0.0,
        seed: int = 0,
        waited: float | None = 0.8,
        settings: dict[str, Any] | None = None,
        torch: dict[str, Any] | None = None,
        failing: Callable[[Settings], str] = lambda _: "",
        memory_bytes: int = 10**9,
        epochs: int = 5,
        batches_per_step: Callable[[Settings], int] = lambda _: 0,
        made_at: Frame = MADE_AT,
    ) -> None:
        self.speed, self.noise, self.waited = speed, noise, waited
        self.random = random.Random(seed)
        self.settings = {"batch_size": 16, "num_workers": 0, "samples": 1000} | (settings or {})
        self.torch = torch or {}
        self.failing = failing
        self.memory_bytes = memory_bytes
        self.epochs = epochs
        self.batches_per_step = batches_per_step
        self.made_at = made_at
        self.now_s = 0.0
        self.tried: list[Settings] = []
        self.interrupt_at = -1

    def clock(self) -> float:
        return self.now_s

    def __call__(
        self, settings: Settings, limit_s: float, made_at: tuple[str, int] | None
    ) -> Attempt:
        if len(self.tried) == self.interrupt_at:
            raise KeyboardInterrupt
        self.tried.append(settings)
        self.now_s += RUN_S
        if words := self.failing(settings):
            return Attempt(settings, RUN_S, exit_code=1, tail=words)
        speed = self.speed(settings) * self.random.lognormvariate(0, self.noise)
        batches = self.batches_per_step(settings)
        steps = 20 if batches else max(20, round(speed * 1e6))
        batch_s = steps / speed / (steps * batches or 1)
        names = ("num_workers", "prefetch_factor", "persistent_workers", "batch_size")
        own = self.settings | {name: settings[name] for name in names if name in settings}
        loader = Loader(
            settings=own,
            made_at=self.made_at,
            made=1,
            epochs=self.epochs,
            batches=100,
            first_s=0.0,
            waits={},
            batch={"bytes": 16_000},
            given=tuple(GivenBatch(n * batch_s, 0.0, False) for n in range(1, steps * batches + 1)),
        )
        process = WatchedProcess(
            node="n", pid=1, python="3.11.0", began_s=0, until_s=1, stacks=(),
            libraries={"torch": self.torch}, loaders=(loader,),
        )  # fmt: skip
        return Attempt(
            settings,
            RUN_S,
            pace=Pace(steps, 0.0, steps / speed, True),
            unit="step",
            waited=self.waited,
            process=process,
            loader=loader,
            used_bytes=self.memory_bytes,
            most_bytes=self.memory_bytes,
        )
