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


TOKENIZER = """
import inspect, torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "a": 2}, unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")
texts = ["a " * 10, "a " * 30]
kinds = dict(truncation=True, max_length=64, padding="max_length")
print(tokenizer(texts, **kinds)["attention_mask"][0].count(1))
print(tokenizer(texts, return_tensors="pt", **kinds)["input_ids"].shape)
print(tokenizer(texts[0], **kinds)["input_ids"][:3])
print(tokenizer("a a")["input_ids"], tokenizer(["a", "a a"])["input_ids"])
print(list(inspect.signature(tokenizer.__call__).parameters)[:2])
try:
    tokenizer(3)
except (TypeError, ValueError) as error:
    print(type(error).__name__)
"""


def test_padding_of_tokenizers_is_counted(probed: Probed) -> None:
    without = probed.run(TOKENIZER, python=WITH_FRAMEWORKS, probe=False)
    done = probed.run(TOKENIZER, python=WITH_FRAMEWORKS)
    assert (done.stdout, done.returncode) == (without.stdout, 0), done.stderr
    (process,) = probed.watched()
    facts = process.libraries["transformers"]
    padding = 2 * (54 + 34) + 54
    assert facts["token_padding_percent"] == round(100 * padding / (5 * 64), 2)
    assert facts["tokenized_at"][3] == "tokenizer(texts, **kinds)"
