"""Results that a hook overwrites in each step, and results that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
import lightning as L
class Dyes(L.LightningModule):
    def __init__(self):
        self.record = {{}}
    def {hook}(self{params}):
        for name, weight in self.named_parameters():
            values = weight.grad.numpy()
            {store}
    def {reader}(self):
        print({read})
    def other(self):
        {other}
def main(loader):
    L.Trainer().fit(Dyes(), loader)
"""
PARTS = {
    "hook": "on_after_backward",
    "params": "",
    "store": "self.record[name] = np.histogram(values, 64)",
    "reader": "on_train_epoch_end",
    "read": "self.record",
    "other": "pass",
}
FIT = "L.Trainer().fit(Dyes(), loader)"
CALLER = "lib:lightning/pytorch/trainer/call.py:_call_lightning_module_hook"


def overwritten(caller=CALLER, **changes):
    source = SOURCE.format(**(PARTS | changes))
    return found(source, FIT, caller, "np.histogram(values, 64)").get("record_overwritten")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, {"trainer": "self.trainer", "lines": "lines 14 to 16"}),
        ({"hook": "on_train_batch_end", "params": ", trainer, model"}, {"trainer": "trainer"}),
        ({"store": "self.record = np.histogram(values, 64)"}, {"record": "self.record"}),
        ({"store": "self.record['all'] = np.histogram(values, 64)"}, {"lines": "lines 14 to 16"}),
        ({"reader": "on_validation_epoch_end"}, {"reader": "on_validation_epoch_end"}),
        # The loop does something else too: only the line with the result needs the condition.
        ({"store": "print(name); self.record[name] = np.histogram(values, 64)"},
         {"lines": "line 16"}),
    ],
)  # fmt: skip
def test_overwritten_results(changes, words):
    assert overwritten(**changes).items() >= words.items()


@pytest.mark.parametrize(
    "changes",
    [
        # Each step has a result of its own.
        {"store": "self.record[self.global_step] = np.histogram(values, 64)"},
        {"store": "step = self.step; self.record[step] = np.histogram(values, 64)"},
        {"store": "self.record[name] += np.histogram(values, 64)[0]"},
        {"store": "self.record.append(np.histogram(values, 64))"},
        # Something else may read the result.
        {"other": "return self.record"},
        {"reader": "on_train_batch_end"},
        {"read": "None"},
        {"store": "self.record[name] = np.histogram(values, 64); self.log_dict(self.record)"},
        # Not a hook of each step.
        {"hook": "on_train_epoch_start"},
        {"caller": "lib:other/trainer.py:call"},
        # The function may do more than compute.
        {"store": "self.record[name] = self.write(np.histogram(values, 64))"},
    ],
)
def test_other_results(changes):
    assert overwritten(**changes) is None
