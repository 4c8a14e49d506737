"""What a finding calls a piece of the program's source."""

from __future__ import annotations

import pytest

from teho.explain.nouns import noun_of


@pytest.mark.parametrize(
    ("text", "noun"),
    [
        ("torch.linalg.qr(v)", "call"),
        ("jax.lax.scan(step, jnp.zeros((4, 4)), jnp.arange(10_000), length=10_000, unro", "call"),
        ("add[g, b](hours)", "call"),
        ("forward(x)", "call"),
        ("a @ b.T", "call"),
        ("for t in range(n)", "loop"),
        ("async for row in rows", "loop"),
        ("[turn(one, 1) for one in data]", "loop"),
        ("format=x", "option"),
        ("probability=True", "option"),
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', "setting"),
        ("torch.backends.cudnn.enabled = False", "setting"),
        ("self.kinds[z]", "expression"),
        ("labels == k", "comparison"),
        ("LIMIT ? OFFSET ?", "clause"),
        ("return hash(self.x + self.y)", "line"),
    ],
)
def test_the_noun_of_a_text(text, noun):
    assert noun_of(text) == noun
