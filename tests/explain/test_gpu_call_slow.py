"""Calls and options that make the work of the GPU slow, with what the GPU must show."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import NODE, of_library, own, process, seen, watched
from explain.program_scenarios import node
from explain.scenario_parts import UNSUPPORTED, NodePart, figures, found, gpu, judged, kinds_of
from teho.explain.rules.gpu import gpu_call_slow, gpu_low_use, gpu_sm_low
from teho.model.finding import Abstention, Certainty, Severity
from teho.model.in_source import CostlyOption
from teho.model.stack import State

QR = own("torch.linalg.qr(v)", 45, "ortho")
WAITS = own("loss.item()", 69, "main")
FEW = {"gpu_sm_active_percent": 1.0}
WORDS = {
    "qr_one_by_one_torch": {"lib": "torch", "matrix": "v"},
    "parameter_indexed": {"old": "self.kinds[z]", "new": "F.embedding(z, self.kinds)"},
    "linear_scan_rewritten": {"first": "38", "lines": "first = 0.0"},
    "scan_of_small_steps": {"scan": "jax.lax.scan"},
    "dependent_steps": {"state": "h", "loop": "31", "last": "34", "lib": "torch"},
    "slow_length_on_gpu": {
        "length": "186007", "kind": "is a prime number", "set": "3", "old": "n = a",
        "new": "n = next_fast_len(a, True)", "import": "from scipy.fft import next_fast_len",
    },
    "host_arrays_launched": {
        "arrays": "`hours`", "before": "d_hours = cuda.to_device(hours)", "loop": "9",
        "new": "add[g, b](d_hours)", "last": "12", "after": "d_hours.copy_to_host(hours)",
    },
}  # fmt: skip


def made(name, *stacks, busy=90.0, text="f(x)", lines=(), devices=None, **signals):
    """Return a run in whose source a call was found, and the GPU that it used."""
    at = own(text, 31, "main")
    call = CostlyOption(name=name, at=at, lines=tuple(lines), words=WORDS[name])
    facts = {"torch": {"devices": devices}} if devices else {}
    one = process(*stacks, costly_options=(call,), progress=(), **facts)
    return watched(one, parts=node(gpus=[gpu(busy, **{**FEW, **signals})]))


class TestMatrices:
    def test_the_line_takes_the_time(self):
        given = made("qr_one_by_one_torch", seen((QR,), 74.0), busy=45.0, lines=[QR])
        finding = found(gpu_call_slow, given)
        assert finding.sentence == (
            "The call `f(x)` at train.py:31 decomposes many small matrices, but the GPU computes "
            "them one after the other. This line took 74 % of the run time. While it worked, the "
            "GPU used only 2.2 % of its multiprocessors (computing units)."
        )
        assert finding.action.startswith("Replace `f(x)` at train.py:31 with `batched_qr(v)`, ")
        assert "teho profile" not in finding.action
        assert finding.regain_percent == (pytest.approx(29.6), pytest.approx(70.3))
        assert (finding.severity, finding.certainty) == (Severity.CRITICAL, Certainty.LIKELY)
        assert figures(finding)["SM activity while the GPU was busy"] == pytest.approx(
            2.22, abs=0.1
        )

    def test_the_program_waits_elsewhere(self):
        finding = found(gpu_call_slow, made("qr_one_by_one_torch", seen((WAITS,), 74.0)))
        assert finding.certainty is Certainty.POSSIBLE
        assert "This line took" not in finding.sentence
        assert finding.action.endswith(
            " To check this first, use `teho profile --window 2s --with stack -- "
            "./train --epochs 90`: if this is the cause, the list of kernels begins with `orgqr` "
            "or `larf`."
        )

    @pytest.mark.parametrize(
        ("signals", "count"),
        [
            ({"gpu_sm_active_percent": 13.4}, 1),  # 14.9 % while it was busy
            ({"gpu_sm_active_percent": 13.6}, 0),
            ({"busy": 25.0, "gpu_sm_active_percent": 0.2}, 1),
            ({"busy": 24.9, "gpu_sm_active_percent": 0.2}, 0),
            ({"busy": 0.0, "gpu_sm_active_percent": 0.0}, 0),
        ],
    )
    def test_limits(self, signals, count):
        given = made("qr_one_by_one_torch", seen((QR,), 74.0), lines=[QR], **signals)
        assert len(judged(gpu_call_slow, given)) == count

    @pytest.mark.parametrize(
        ("power_w", "limit_w", "count"), [(99.0, 400.0, 1), (100.0, 400.0, 0), (99.0, None, 0)]
    )
    def test_the_power_without_the_activity(self, power_w, limit_w, count):
        signals = {"gpu_sm_active_percent": UNSUPPORTED, "gpu_power_w": power_w}
        at = CostlyOption(
            name="qr_one_by_one_torch", at=QR, lines=(QR,), words=WORDS["qr_one_by_one_torch"]
        )
        one = process(seen((QR,), 74.0), costly_options=(at,), progress=())
        part = NodePart(NODE, cores=8, gpus=[gpu(90.0, **signals)], power_limit_w=limit_w)
        findings = judged(gpu_call_slow, watched(one, parts=[part]))
        assert len(findings) == count
        if findings:
            assert "the GPU drew only 25 % of its power limit" in findings[0].sentence
            assert findings[0].certainty is Certainty.POSSIBLE
            assert "To check this first" in findings[0].action

    def test_an_abstention_without_the_busy_share(self):
        given = made("qr_one_by_one_torch", busy=UNSUPPORTED, gpu_sm_active_percent=UNSUPPORTED)
        assert isinstance(judged(gpu_call_slow, given), Abstention)

    def test_without_a_gpu(self):
        call = CostlyOption(
            name="qr_one_by_one_torch", at=QR, lines=(QR,), words=WORDS["qr_one_by_one_torch"]
        )
        given = watched(process(seen((QR,), 74.0), costly_options=(call,)))
        assert judged(gpu_call_slow, given) == []

    @pytest.mark.parametrize(("devices", "count"), [(["cpu"], 0), (["cuda:0"], 1)])
    def test_a_model_on_the_cpu(self, devices, count):
        given = made("qr_one_by_one_torch", seen((QR,), 74.0), lines=[QR], devices=devices)
        assert len(judged(gpu_call_slow, given)) == count


class TestIndices:
    def test_a_busy_gpu_for_which_the_program_waits(self):
        finding = found(gpu_call_slow, made("parameter_indexed", seen((WAITS,), 90.0)))
        assert finding.certainty is Certainty.POSSIBLE
        assert "write `F.embedding(z, self.kinds)` instead of `self.kinds[z]`" in finding.action
        assert "`indexing_backward_kernel`" in finding.action

    def test_a_program_that_starts_kernels_all_the_time(self):
        python = seen((own("h = h + block(h)", 34),), 96.0, State.PYTHON)
        steps = made("parameter_indexed", python)
        assert judged(gpu_call_slow, steps) == []

    @pytest.mark.parametrize(("busy", "count"), [(80.0, 1), (79.9, 0)])
    def test_threshold_of_the_busy_share(self, busy, count):
        given = made("parameter_indexed", seen((WAITS,), 90.0), busy=busy)
        assert len(judged(gpu_call_slow, given)) == count


class TestLoops:
    def test_a_linear_recurrence(self):
        finding = found(gpu_call_slow, made("linear_scan_rewritten", busy=60.0))
        assert "the recurrence is linear and can be" in finding.sentence
        assert finding.certainty is Certainty.POSSIBLE

    def test_the_time_in_which_jax_traces_the_line(self):
        scan = own("jax.lax.scan(step, start, x)", 38, "series")
        stack = (own("keep * s", 35), scan, of_library("jax/_src/pjit.py", "trace"), own("f()", 76))
        finding = found(
            gpu_call_slow,
            made("linear_scan_rewritten", seen(stack, 30.0), busy=60.0, lines=[scan]),
        )
        assert "This line took" not in finding.sentence

    STEP = own("torch.tanh(self.wh(h))", 33, "forward")

    @pytest.mark.parametrize(("wall_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_the_lines_of_a_loop(self, wall_s, count):
        step = seen((self.STEP,), wall_s)
        given = made(
            "dependent_steps", step, busy=60.0, text="for t in range(n)", lines=[self.STEP]
        )
        findings = judged(gpu_call_slow, given)
        assert len(findings) == count
        if findings:
            assert "This loop took 10 % of the run time." in findings[0].sentence
            assert findings[0].certainty is Certainty.POSSIBLE

    def test_large_steps(self):
        given = made("scan_of_small_steps", gpu_sm_active_percent=85.0)
        assert judged(gpu_call_slow, given) == []


class TestLengths:
    @pytest.mark.parametrize(("busy", "count"), [(50.0, 1), (49.9, 0)])
    def test_threshold(self, busy, count):
        given = made("slow_length_on_gpu", busy=busy, gpu_sm_active_percent=0.9 * busy)
        assert len(judged(gpu_call_slow, given)) == count


class TestHostArrays:
    LAUNCH = own("add[g, b](hours)", 31, "main")

    @pytest.mark.parametrize(("wall_s", "count"), [(9.9, 0), (10.0, 1)])
    def test_the_time_of_the_line(self, wall_s, count):
        given = made("host_arrays_launched", seen((self.LAUNCH,), wall_s), lines=[self.LAUNCH])
        assert len(judged(gpu_call_slow, given)) == count

    def test_the_advice(self):
        launch = seen((self.LAUNCH,), 80.0)
        finding = found(gpu_call_slow, made("host_arrays_launched", launch, lines=[self.LAUNCH]))
        assert finding.certainty is Certainty.LIKELY
        assert "write `d_hours = cuda.to_device(hours)` before the loop at line 9" in finding.action


ATTENTION = of_library("torch/nn/modules/activation.py", "MultiheadAttention.forward")
WEIGHTS = CostlyOption(
    name="attention_weights_unused",
    at=own("self.attention(x, x, x)", 31),
    words={"new": "self.attention(x, x, x, need_weights=False)"},
)
DETERMINISTIC = CostlyOption(
    name="deterministic", at=own("torch.use_deterministic_algorithms(True)", 5)
)
BLOCKING = CostlyOption(
    name="kernels_awaited", at=own('os.environ["CUDA_LAUNCH_BLOCKING"] = "1"', 3)
)


class TestOptions:
    @staticmethod
    def made(*options, busy=95.0, active=90.0, devices=("cuda:0",), stacks=(), power_w=300.0):
        stack = seen((ATTENTION, own("self.attention(x, x, x)", 31)), 1.0)
        facts = {"cuda": "13.0", "devices": list(devices)}
        one = process(stack, *stacks, torch=facts, costly_options=options)
        signals = {"gpu_sm_active_percent": active, "gpu_power_w": power_w}
        return watched(one, parts=[NodePart(NODE, gpus=[gpu(busy, **signals)], power_limit_w=700)])

    def test_unused_weights(self):
        finding = found(gpu_call_slow, self.made(WEIGHTS))
        assert (finding.severity, finding.certainty) == (Severity.WARNING, Certainty.POSSIBLE)
        assert finding.sentence == (
            "The call `self.attention(x, x, x)` at train.py:31 also computes the attention "
            "weights, which the program does not use: PyTorch then cannot use its fused attention. "
            "From its first work to its last, the GPU was busy 95 % of the time."
        )
        assert finding.action == (
            "At train.py:31, write `self.attention(x, x, x, need_weights=False)`. The results stay "
            "the same except for rounding. To see what it saves, run the program with and without "
            "this change: `teho compare`. `teho profile --steps 20:25 --with stack -- "
            "./train --epochs 90` names the kernels."
        )
        assert finding.regain_percent == (0.0, pytest.approx(38.0))

    @pytest.mark.parametrize(("active", "count"), [(49.9, 1), (50.0, 0)])
    def test_deterministic_sums_need_idle_multiprocessors(self, active, count):
        given = self.made(DETERMINISTIC, busy=100.0, active=active)
        assert len(judged(gpu_call_slow, given)) == count

    @pytest.mark.parametrize(("power_w", "count"), [(174.0, 1), (175.0, 0)])
    def test_deterministic_sums_by_the_power(self, power_w, count):
        given = self.made(DETERMINISTIC, busy=100.0, active=UNSUPPORTED, power_w=power_w)
        assert len(judged(gpu_call_slow, given)) == count

    def test_a_debug_mode_is_likely(self):
        finding = found(gpu_call_slow, self.made(BLOCKING, busy=20.0))
        assert finding.sentence.startswith("The setting `os.environ[")
        assert finding.certainty is Certainty.LIKELY
        assert "teho compare" not in finding.action
        assert finding.thresholds[1:] == (gpu_call_slow.THRESHOLDS["used_percent"],)

    @pytest.mark.parametrize(
        ("option", "changes"),
        [
            (WEIGHTS, {"busy": 49.0}),
            (BLOCKING, {"busy": 9.0}),
            (WEIGHTS, {"devices": ["cpu"]}),
            (msgspec.structs.replace(WEIGHTS, name="attention_not_fused"), {}),
        ],
    )
    def test_look_alikes(self, option, changes):
        assert judged(gpu_call_slow, self.made(option, **changes)) == []

    def test_several_options_but_only_one_call_that_explains_the_loss(self):
        decompose, index = (
            CostlyOption(name=name, at=own(text, line), lines=(own(text, line),), words=WORDS[name])
            for name, text, line in (
                ("qr_one_by_one_torch", "torch.linalg.qr(v)", 45),
                ("parameter_indexed", "self.kinds[z]", 52),
            )
        )
        options = decompose, index, WEIGHTS, DETERMINISTIC
        stacks = [seen((index.at,), 30.0), seen((decompose.at,), 20.0)]
        given = self.made(*options, active=1.0, stacks=stacks)
        sentences = [one.sentence for one in judged(gpu_call_slow, given)]
        assert [one.partition(" at ")[0] for one in sentences] == [
            "The expression `self.kinds[z]`",
            "The call `torch.use_deterministic_algorithms(True)`",
            "The call `self.attention(x, x, x)`",
        ]

    def test_what_may_save_nothing_mutes_nothing(self):
        given = self.made(DETERMINISTIC, active=20.0)
        (finding,) = judged(gpu_call_slow, given)
        assert not finding.mutes
        assert "gpu_decides_speed" in kinds_of(given)


def test_it_comes_before_what_the_gpu_shows():
    given = made("qr_one_by_one_torch", seen((QR,), 74.0), busy=45.0, lines=[QR])
    assert kinds_of(given) == ["gpu_call_slow"]
    plain = watched(process(seen((QR,), 74.0), progress=()), parts=node(gpus=[gpu(45.0, **FEW)]))
    assert "gpu_low_use" in kinds_of(plain)


class TestAdviceOfOtherRules:
    @staticmethod
    def made(text, file=None):
        stack = (own(text, 9),)
        one = process(seen(stack, 95.0), progress=())
        return watched(one, parts=node(gpus=[gpu(45.0, gpu_sm_active_percent=1.0)]))

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("torch.linalg.qr(v)", "join small operations with `torch.compile`"),
            ("jnp.dot(a, b)", "`jax.vmap`"),
            ("cp.fft.rfft(x)", "`@cupy.fuse()`"),
            ("tf.matmul(a, b)", "`@tf.function(jit_compile=True)`"),
            ("work(x)", "with a larger `batch_size`"),
        ],
    )
    def test_low_use(self, text, words):
        assert words in found(gpu_low_use, self.made(text)).action

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (
                "torch.linalg.qr(v)",
                "use `teho profile --window 2s --with stack -- ./train --epochs 90`. ",
            ),
            ("cp.fft.rfft(x)", "`nsys profile --stats=true ./train --epochs 90`"),
        ],
    )
    def test_few_multiprocessors(self, text, words):
        one = process(seen((own(text, 9),), 95.0), progress=())
        parts = node(gpus=[gpu(95.0, gpu_sm_active_percent=3.0)])
        action = found(gpu_sm_low, watched(one, parts=parts)).action
        assert action.startswith("The kernels have too few threads, or they run one after the ")
        assert words in action
