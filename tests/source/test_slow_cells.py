"""Recurrent cells that a loop calls for each time step, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_slow_calls import found

SOURCE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = {cell}
        self.head = nn.Linear(9, 2)
    def forward(self, x, z):
        h = x.new_zeros(len(x), 9)
        c = x.new_zeros(len(x), 9)
        states = []
        {loop}
            {step}
            {more}
        {last}
"""
PARTS = {
    "cell": "nn.LSTMCell(4, 9)",
    "loop": "for t in range(x.shape[1]):",
    "step": "h, c = self.cell(x[:, t], (h, c))",
    "more": "states.append(h)",
    "last": "return self.head(torch.stack(states, 1))",
}
GRU = {"cell": "nn.GRUCell(4, 9)", "step": "h = self.cell(x[:, t], h)"}


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({}, True),
        (GRU, True),
        ({"cell": "nn.RNNCell(4, 9, nonlinearity='relu')", "step": "h = self.cell(x[t], h)"}, True),
        ({"loop": "for t in range(len(x)):", "step": "h, c = self.cell(x[t], (h, c))"}, True),
        ({"step": "h, c = self.cell(x[:, t, :], (h, c))"}, True),
        ({"more": "states.append(self.head(h))"}, True),
        ({"more": "out = self.head(h); states.append(out)"}, True),
        ({"last": "return self.head(h)"}, True),
        # ---- which look like it ----
        ({"cell": "nn.Linear(4, 9)"}, False),
        ({"cell": "MyCell(4, 9)"}, False),
        ({"loop": "while x[0, 0, 0] > h[0, 0]:"}, False),
        ({"step": "h, c = self.cell(x[:, 0], (h, c))"}, False),  # the same input again
        ({"step": "h, c = self.cell(x[:, t], (h, c)); h = self.drop(h)"}, False),
        ({"step": "h = self.norm(h); h, c = self.cell(x[:, t], (h, c))"}, False),
        ({"step": "y = self.head(h)\n            h, c = self.cell(x[:, t], (h, c))"}, False),
        ({"step": "h, c = self.cell(torch.cat([x[:, t], h], 1), (h, c))"}, False),  # attention
        ({"more": "x[:, t + 1] = self.head(h)"}, False),  # its output is the next input
        ({"more": "x = self.head(h)"}, False),
        ({"more": "states.append(c)"}, False),  # the module does not return all cell states
        ({"last": "return h, c"}, False),
        ({"more": "if h.max() > 3: break"}, False),
        ({"last": "return self.cell(z, (h, h))"}, False),  # also called for single steps
        ({"step": "h, c = self.cell(x[:, t], (z, c))"}, False),
        ({"loop": "for t in reversed(range(x.shape[1])):"}, False),
        ({"loop": "for t in range(x.shape[1] - 1, -1, -1):"}, False),
    ],
)  # fmt: skip
def test_cells(changes, is_found):
    parts = PARTS | changes
    step = parts["step"].split(";")[-1 if parts["step"].startswith("h = self.norm") else 0]
    call = step.split("\n")[-1].split(" = ", 1)[1].strip()
    assert bool(found(SOURCE.format(**parts), call)) is is_found


def test_the_code_for_cells():
    words = found(SOURCE.format(**PARTS), "self.cell(x[:, t], (h, c))")["cell_for_each_step"]
    assert words["new_cell"] == "self.cell = nn.LSTM(4, 9, batch_first=True)"
    assert words["before"] == "steps = self.cell(x, (h[None], c[None]))[0].unbind(1)"
    assert words["new"] == "h = steps[t]"
    parts = PARTS | {"cell": "nn.GRUCell(4, 9, False)", "step": "h = self.cell(x[t], h)"}
    words = found(SOURCE.format(**parts), "self.cell(x[t], h)")["cell_for_each_step"]
    assert words["new_cell"] == "self.cell = nn.GRU(4, 9, bias=False)"
    assert words["before"] == "steps = self.cell(x, h[None])[0].unbind(0)"
