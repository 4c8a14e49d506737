"""Averages of weights in host memory, and copies of weights that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

AVERAGE = """
class Average(L.Callback):
    def on_train_start(self, trainer, module):
        self.shadow = {{k: v.detach().cpu().clone() for k, v in module.state_dict().items()}}
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        for name, value in {over}:
            {copy}
            {update}
"""
HOOK = "lib:lightning/pytorch/trainer/call.py:_call_callback_hooks"
COPY = "fresh = value.detach().cpu()"
UPDATE = "self.shadow[name] = self.d * self.shadow[name] + (1 - self.d) * fresh"


def average(update=UPDATE, copy=COPY, over="module.state_dict().items()", active=""):
    source = AVERAGE.format(over=over, copy=copy, update=update)
    return found(source, HOOK, active or copy.removeprefix("fresh = "))


@pytest.mark.parametrize(
    ("update", "copy", "active"),
    [
        (UPDATE, COPY, ""),
        (UPDATE, COPY, "self.d * self.shadow[name]"),
        ("self.shadow[name].lerp_(fresh, 1 - self.d)", COPY, ""),
        ("self.shadow[name].mul_(self.d).add_(fresh, alpha=1 - self.d)", COPY, ""),
        ("self.shadow[name].mul_(self.d).add_(value.cpu(), alpha=1 - self.d)", "pass",
         "value.cpu()"),
        ("self.shadow[name] += (1 - self.d) * fresh", COPY, ""),
    ],
)  # fmt: skip
def test_an_average_of_the_weights_in_host_memory(update, copy, active):
    words = average(update, copy, active=active)["weights_averaged_on_host"]
    assert words["average"] == "self.shadow"
    assert words["new"] in ("value.detach()", "value")
    assert "write `v.detach().clone()` instead of `v.detach().cpu()" in words["begins"]


@pytest.mark.parametrize(
    ("update", "copy", "over", "active"),
    [
        ("self.best[name] = fresh", COPY, "module.state_dict().items()", ""),  # a copy to save
        (UPDATE, "fresh = value.detach()", "module.state_dict().items()", ""),
        (UPDATE, COPY, "batch.items()", ""),
        ("self.shadow[name] = self.shadow[name] + fresh", COPY, "module.state_dict().items()", ""),
        (f"{UPDATE}; log(fresh)", COPY, "module.state_dict().items()", ""),
    ],
)
def test_other_copies_of_weights(update, copy, over, active):
    assert average(update, copy, over, active) == {}


def test_a_first_copy_without_clone():
    source = AVERAGE.format(over="module.state_dict().items()", copy=COPY, update=UPDATE)
    words = found(source.replace(".cpu().clone()", ".cpu()"), HOOK, "value.detach().cpu()")
    assert "write `v.detach().clone()` instead" in words["weights_averaged_on_host"]["begins"]


def test_an_average_in_another_model():
    source = """
    def update(ema, model, d):
        for e, p in zip(ema.parameters(), model.parameters()):
            e.mul_(d).add_(p.cpu(), alpha=1 - d)
    def main(ema, model):
        for step in range(99):
            update(ema, model, 0.99)
    """
    words = found(source, "update(ema, model, 0.99)", "p.cpu()")["weights_averaged_on_host"]
    assert words["begins"].startswith("Move `ema` to the GPU")


def test_an_average_once_after_the_training():
    source = """
    def main(module, shadow, d):
        for name, value in module.state_dict().items():
            shadow[name] = d * shadow[name] + (1 - d) * value.cpu()
    """
    assert found(source, "value.cpu()") == {}
