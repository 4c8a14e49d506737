"""What the probe notes of text generation with the real Transformers."""

from __future__ import annotations

import pytest

from probe.probed import WITH_FRAMEWORKS, Probed
from support import lacks_framework

pytestmark = [
    pytest.mark.skipif(
        bool(lacks_framework("transformers")), reason=lacks_framework("transformers")
    ),
    pytest.mark.drawn(1, group="frameworks beside PyTorch"),
]

PROGRAM = """
import inspect, torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9, n_positions=16))
ids = torch.tensor([[1, 2, 3]])
few = dict(max_new_tokens=2, do_sample=False, pad_token_id=0, eos_token_id=8)
given = GenerationConfig(**few, use_cache=False)
print(model.generate(ids, **few).tolist())                      # the model's own setting: True
print(model.generate(ids, **few, use_cache=False).tolist())
print(model.generate(ids, generation_config=given).tolist())
print(model.generate(ids, given).tolist())
print(sorted(inspect.signature(model.generate).parameters)[:3])
try:
    model.generate(ids, nonsense=1)
except (TypeError, ValueError) as error:
    print(type(error).__name__)
"""


def test_calls_with_and_without_the_cache_are_counted(probed: Probed) -> None:
    without = probed.run(PROGRAM, python=WITH_FRAMEWORKS, probe=False)
    done = probed.run(PROGRAM, python=WITH_FRAMEWORKS)
    assert (done.stdout, done.returncode) == (without.stdout, 0), done.stderr
    (process,) = probed.watched()
    # The last call has a setting that Transformers refuses, and no `use_cache`.
    assert process.libraries["transformers"] == {
        "generated_with_cache": 2, "generated_without_cache": 3,
    }  # fmt: skip
