"""Sizes that are slow on a GPU: of layers, of inputs, and of padded batches; 64-bit numbers."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import NODE, computing, loader, own, process, seen, watched
from explain.scenario_parts import (
    UNSUPPORTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    kinds_of,
    repeated,
)
from teho.explain.analysis import Analysis
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.cpu import double_precision
from teho.explain.rules.gpu import (
    convolutions_searched_again,
    images_channels_first,
    matrix_sizes_unaligned,
)
from teho.explain.rules.input import input_padded
from teho.explain.run_verdict import verdict_of
from teho.model.finding import Certainty, Severity
from teho.model.in_source import CostlyOption
from teho.model.run import RunState
from teho.model.stack import Frame, State
from teho.model.watched import Loader

ON_GPU = {"cuda": "13.0", "devices": ["cuda:0"]}
H200 = "NVIDIA H200"
MADE_AT = ["/home/ada/train.py", "Model.__init__", 43, "nn.Linear(768, 50257, bias=False)"]
HEAD = {
    "rows": 50257, "columns": 768, "dtype": "float32", "share_percent": 58.0, "made_at": MADE_AT,
}  # fmt: skip


def part(busy=100.0, tensor=22.0, name=H200, **signals):
    one = gpu(busy, gpu_tensor_percent=tensor, **signals)
    return NodePart(NODE, gpus=[one], model=name)


class TestMatrixSizes:
    @staticmethod
    def made(*, busy=100.0, tensor=22.0, name=H200, head=None, **facts):
        facts = ON_GPU | {"autocast": "bfloat16", "odd_layers": [HEAD | (head or {})]} | facts
        return watched(process(torch=facts), parts=[part(busy, tensor, name)])

    def test_names_the_layer_and_the_new_size(self):
        finding = found(matrix_sizes_unaligned, self.made())
        assert finding.severity is Severity.WARNING
        assert finding.sentence == (
            "A linear layer, made at train.py:43, has 50,257 outputs (768 inputs). 50,257 is not a "
            "multiple of 8 (numbers of 16 bits), so the tensor cores of the GPU work less "
            "efficiently. This layer has 58 % of the weights of all matrices."
        )
        assert finding.action.startswith(
            "Write 50304 instead of 50257 where the program sets the size of this layer: the next "
            "multiple of 64. "
        )
        assert "the 47 additional tokens are never in the data" in finding.action
        assert figures(finding)["activity of the tensor cores while the GPU was busy"] == 22.0
        assert finding.regain_percent is not None
        assert 0 < finding.regain_percent[0] < finding.regain_percent[1] < 0.4 * 58

    def test_names_the_line_that_chooses_the_size(self):
        words = {"size": "50257", "new": "VOCAB = 50304", "old": "VOCAB = 50257"}
        chosen = CostlyOption(name="odd_size", at=own("VOCAB = 50257", 13), lines=(), words=words)
        other = msgspec.structs.replace(chosen, words=words | {"size": "1001"})
        facts = ON_GPU | {"autocast": "bfloat16", "odd_layers": [HEAD]}
        for options, begin in (
            ((other, chosen), "At train.py:13, write `VOCAB = 50304` instead of `VOCAB = 50257`: "),
            ((other,), "Write 50304 instead of 50257 where "),
        ):
            made = watched(process(torch=facts, costly_options=options), parts=[part()])
            assert found(matrix_sizes_unaligned, made).action.startswith(begin)

    @pytest.mark.parametrize(
        ("head", "facts", "new"),
        [
            ({"rows": 770, "columns": 768}, {}, "832 instead of 770"),
            ({"rows": 768, "columns": 100}, {}, "104 instead of 100"),
            ({"dtype": "float16"}, {"autocast": None}, "50304"),
            ({"dtype": "bfloat16"}, {"autocast": None}, "50304"),
            ({}, {"autocast": None, "float32_matmul_precision": "high"}, "50304"),
            ({}, {"convolutions": 2}, "50304"),
        ],
    )
    def test_other_sizes_and_types(self, head, facts, new):
        assert new in found(matrix_sizes_unaligned, self.made(head=head, **facts)).action

    @pytest.mark.parametrize(
        "changes",
        [
            {"odd_layers": []},
            {"head": {"share_percent": 24.9}},
            {"head": {"rows": 50256}},
            {"busy": 49.0},
            {"tensor": 40.0},
            {"autocast": None},
            {"autocast": None, "float32_matmul_precision": "highest"},
            # 4 numbers of TF32 have 16 bytes.
            {"autocast": None, "float32_matmul_precision": "high", "head": {"rows": 50260}},
            {"devices": ["cpu"]},
            {"convolutions": 3},
            {"name": "Tesla P100-PCIE-16GB"},
        ],
    )
    def test_look_alikes(self, changes):
        assert judged(matrix_sizes_unaligned, self.made(**changes)) == []


CONV = Frame(
    "/home/ada/env/lib/python3.11/site-packages/torch/nn/modules/conv.py",
    "Conv2d._conv_forward", 548, "F.conv2d(input, weight, bias, self.stride)",
)  # fmt: skip
BACKWARD = Frame(
    "/home/ada/env/lib/python3.11/site-packages/torch/_tensor.py", "Tensor.backward", 0, ""
)
SETTING = CostlyOption(
    name="cudnn_benchmark", at=own("torch.backends.cudnn.benchmark = True", 11), lines=()
)
CHANGES = CostlyOption(name="width_changes", at=own("longest", 62), lines=(), words={"axes": "4"})


class TestConvolutions:
    @staticmethod
    def made(
        *, forward_s=30.0, busy=2.0, options=(SETTING, CHANGES), sizes=None, parts=(), **facts
    ):
        stacks = (
            seen((CONV, own("self.a(x)", 31)), forward_s),
            seen((BACKWARD, own("loss.backward()", 82)), 40.0, State.THREADS),
            seen((own("x + 1", 90),), 70.0 - forward_s, State.PYTHON),
        )
        loaders: list[Loader] = []
        if sizes is not None:
            loaders = [msgspec.structs.replace(loader(), batch={"bytes": 9, "sizes": sizes})]
        facts = ON_GPU | {"cudnn_benchmark": True} | facts
        one = process(
            *stacks, wall_s=140.0, torch=facts, loaders=loaders, costly_options=options, parts=parts
        )
        return watched(one, parts=[part(busy, 1.0)])

    def test_names_the_setting_and_the_line_of_the_width(self):
        finding = found(convolutions_searched_again, self.made())
        assert finding.severity is Severity.CRITICAL
        assert "`torch.backends.cudnn.benchmark = True` at train.py:11" in finding.sentence
        assert "took 50 % of the run time" in finding.sentence
        assert "write `torch.backends.cudnn.benchmark = False` at train.py:11." in finding.action
        assert (
            "at train.py:62, write `-(-longest // 64) * 64` instead of `longest`" in finding.action
        )
        assert finding.regain_percent == (25.0, 47.5)
        assert "gpu_low_use" not in kinds_of(self.made())

    @pytest.mark.parametrize(("sizes", "count"), [(None, 1), (1, 0), (3, 0), (4, 1)])
    def test_sizes_that_the_probe_counted(self, sizes, count):
        assert len(judged(convolutions_searched_again, self.made(sizes=sizes))) == count
        measured = self.made(sizes=sizes, options=())
        assert len(judged(convolutions_searched_again, measured)) == (sizes == 4)

    @pytest.mark.parametrize(("share", "count"), [(9.0, 0), (11.0, 1)])
    def test_a_search_only_at_first(self, share, count):
        rest = seen((own("x + 1", 90),), 100.0 - share, State.PYTHON)
        last = (seen((CONV, own("self.a(x)", 31)), share), rest)
        made = self.made(parts=((rest,), last))
        assert len(judged(convolutions_searched_again, made)) == count

    def test_widths_that_may_be_those_of_labels(self):
        padded = msgspec.structs.replace(CHANGES, words={})
        finding = found(convolutions_searched_again, self.made(options=(SETTING, padded)))
        assert finding.certainty is Certainty.POSSIBLE
        assert found(convolutions_searched_again, self.made()).certainty is Certainty.LIKELY

    def test_in_lightning(self):
        setting = CostlyOption(
            name="cudnn_benchmark_by_lightning", at=own("benchmark=True", 70), lines=()
        )
        finding = found(convolutions_searched_again, self.made(options=(setting, CHANGES)))
        assert "write `benchmark=False` at train.py:70" in finding.action

    @pytest.mark.parametrize(
        "changes",
        [
            {"options": (SETTING,)},
            {"options": (CHANGES,), "cudnn_benchmark": False},
            {"cudnn_benchmark": False},
            {"forward_s": 13.9},
            {"busy": 50.0},
        ],
    )
    def test_look_alikes(self, changes):
        assert judged(convolutions_searched_again, self.made(**changes)) == []


PADDED = CostlyOption(
    name="padded_to_width",
    at=own("np.zeros((len(texts), 512))", 32),
    lines=(),
    words={
        "first": "train.py:32", "before": "longest = max(len(a) for a in texts)",
        "old": "512", "new": "longest",
    },
)  # fmt: skip


class TestPaddingInTheSource:
    @staticmethod
    def made(busy=(0.0, 20, 95.0, 40), computing_s=60.0, batch=None, options=(PADDED,)):
        idle, idle_bins, work, work_bins = busy
        rest = seen((own("prepare()"),), 100.0 - computing_s, State.PYTHON)
        loaders = [msgspec.structs.replace(loader(), batch=batch)] if batch else []
        one = process(
            computing(computing_s), rest, torch=ON_GPU, costly_options=options, loaders=loaders
        )
        signals = repeated((idle, idle_bins), (work, work_bins))
        return watched(one, parts=[NodePart(NODE, gpus=[gpu(signals)])])

    def test_is_possible_and_has_the_code(self):
        finding = found(input_padded, self.made())
        assert finding.certainty is Certainty.POSSIBLE
        assert finding.sentence.startswith(
            "The batches are padded to a fixed width (`np.zeros((len(texts), 512))` at train.py:32)"
        )
        assert finding.action.startswith(
            "Pad each batch only to its longest item: in the line before train.py:32, write "
            "`longest = max(len(a) for a in texts)`, and at train.py:32, write `longest` instead "
            "of `512`."
        )
        assert finding.regain_percent == (0.0, 42.0)

    def test_what_the_probe_counted_counts_more(self):
        assert judged(input_padded, self.made(batch={"padding_percent": 5.0})) == []
        finding = found(input_padded, self.made(batch={"padding_percent": 80.0}))
        assert finding.certainty is not Certainty.POSSIBLE

    @pytest.mark.parametrize(
        "changes",
        [
            {"options": ()},
            {"computing_s": 24.0},
            {"busy": (0.0, 20, 60.0, 40)},
            {"busy": (0.0, 59, 95.0, 1), "computing_s": 9.0},
        ],
    )
    def test_look_alikes(self, changes):
        assert judged(input_padded, self.made(**changes)) == []

    def test_not_without_a_gpu(self):
        one = process(computing(60.0), torch={"devices": ["cpu"]}, costly_options=(PADDED,))
        assert judged(input_padded, watched(one)) == []


class TestPaddingOfTokenizers:
    @staticmethod
    def made(padding=80.0, computing_s=60.0, batch=None, **facts):
        rest = seen((own("prepare()"),), 100.0 - computing_s, State.PYTHON)
        loaders = [msgspec.structs.replace(loader(), batch=batch)] if batch else []
        at = ["/home/ada/embed.py", "embed", 21, "tok(texts, padding=True)"]
        one = process(computing(computing_s), rest, torch=ON_GPU, loaders=loaders)
        tokens = {"token_padding_percent": padding, "tokenized_at": at} | facts
        one = msgspec.structs.replace(one, libraries=one.libraries | {"transformers": tokens})
        return watched(one, parts=[part(95.0)])

    def test_names_the_tokenizer(self):
        finding = found(input_padded, self.made())
        assert finding.certainty is Certainty.LIKELY
        assert finding.sentence == (
            "Of all tokens that the tokenizer makes (`tok(texts, padding=True)` at embed.py:21), "
            "80 % are padding (tokens without text). The model also computes with the padding."
        )
        assert finding.regain_percent == pytest.approx((24.0, 43.2))

    @pytest.mark.parametrize(
        "changes",
        [
            {"padding": 39.9},
            {"padding": None},
            {"computing_s": 5.0},
            {"batch": {"padding_percent": 5.0}},
            {"generated_with_cache": 3},
        ],
    )
    def test_look_alikes(self, changes):
        assert judged(input_padded, self.made(**changes)) == []


class TestDoublesOnGpus:
    @staticmethod
    def made(text="y = net(x)", share=30.0, name="NVIDIA RTX A5000", parameters=1_000_000):
        stack = seen((own(text),), share)
        facts = ON_GPU | {"parameter_dtypes": {"float64": parameters}}
        return watched(process(stack, torch=facts), parts=[part(95.0, 0.0, name)])

    def test_a_network_on_a_gpu_for_32_bits(self):
        finding = found(double_precision, self.made())
        assert "far more than twice the time" in finding.sentence
        assert finding.regain_percent is not None

    @pytest.mark.parametrize("name", [H200, "NVIDIA A100-SXM4-40GB", "AMD Instinct MI250X"])
    def test_on_a_gpu_for_64_bits_it_claims_no_time(self, name):
        finding = found(double_precision, self.made(name=name))
        assert "far more than twice" not in finding.sentence
        assert finding.regain_percent is None

    @pytest.mark.parametrize(
        "text",
        [
            "factor = torch.linalg.cholesky(k)",
            "torch.cholesky_solve(y[:, None], factor)",
            "cho_factor(k)",
            "torch.linalg.eigh(k)",
            "L, info = torch.linalg.cholesky_ex(A, out=out)",
            "jnp.linalg.solve(a, b)",
        ],
    )
    def test_a_program_that_factorises_matrices(self, text):
        assert judged(double_precision, self.made(text)) == []
        assert len(judged(double_precision, self.made(text, share=0.5))) == 1

    @pytest.mark.parametrize("text", ["torch.linalg.norm(x)", "resolve(x)", "torch.det_loss(x)"])
    def test_other_functions(self, text):
        assert len(judged(double_precision, self.made(text))) == 1

    @pytest.mark.parametrize(("parameters", "count"), [(9_999, 0), (10_000, 1)])
    def test_a_model_with_few_parameters(self, parameters, count):
        assert len(judged(double_precision, self.made(parameters=parameters))) == count


class TestImages:
    @staticmethod
    def made(*, busy=95.0, tensor=20.0, frames=(CONV,), **facts):
        facts = ON_GPU | {"autocast": "float16", "channels_last": False} | facts
        stack = seen((*frames, own("self.a(x)", 31)), 5.0)
        return watched(process(stack, torch=facts), parts=[part(busy, tensor)])

    def test_is_a_remark_without_a_claim(self):
        finding = found(images_channels_first, self.made())
        assert (finding.severity, finding.regain_percent) == (Severity.REMARK, None)
        assert "model.to(memory_format=torch.channels_last)" in finding.action

    @pytest.mark.parametrize(
        "changes",
        [
            {"channels_last": True},
            {"channels_last": None},
            {"autocast": None, "parameter_dtypes": {"float32": 9}},
            {"compiled_graphs": 2},
            {"busy": 79.0},
            {"tensor": 40.0},
            {"frames": ()},
        ],
    )
    def test_look_alikes(self, changes):
        assert judged(images_channels_first, self.made(**changes)) == []


def test_the_verdict_of_a_run_whose_gpu_is_busy_names_the_kernels():
    factor = seen((own("torch.linalg.cholesky(k)"),), 30.0)
    waiting = seen((own("value.item()"),), 70.0)
    facts = ON_GPU | {"parameter_dtypes": {"float64": 5}}
    unknown = part(97.0, gpu_sm_active_percent=UNSUPPORTED, gpu_power_w=UNSUPPORTED)
    run, summary = watched(process(factor, waiting, torch=facts), parts=[unknown])
    findings, _ = judge_all(run, summary, load_policy())
    assert [one.kind for one in findings] == ["gpu_decides_speed"]
    analysis = Analysis(run, RunState.FINISHED, summary, findings=findings)
    sentence, severity = verdict_of(analysis)
    assert severity == "unknown"
    assert sentence.endswith(
        "so its kernels (functions on the GPU) decide the speed of the program."
    )
