"""Of a command and an environment only what may be kept is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.config.privacy import MASK, kept_environment, masked_command, masked_tags, masked_text

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "command",
    [
        ["x", "--token", SECRET],
        ["x", f"--token={SECRET}"],
        ["x", "--api-key", SECRET],
        ["x", "--wandb_api_key", SECRET],
        ["x", "--hfToken", SECRET],
        ["x", "--db.password", SECRET],
        ["x", f"PASSWORD={SECRET}"],
        ["env", f"AWS_SECRET_ACCESS_KEY={SECRET}", "x"],
        ["x", f"https://user:{SECRET}@host/path"],
        ["x", f"--url=s3://bucket?access_key={SECRET}&region=eu"],
        ["curl", "-H", f"Authorization: Bearer {SECRET}"],
        ["bash", "-c", f"export HF_TOKEN={SECRET}; python x.py"],
        ["bash", "-c", f"python x.py --password '{SECRET}' --epochs 3"],
        ["x", "hf_abcdefghijklmnopqrstuvwx"],
        ["x", "ghp_abcdefghijklmnopqrstuvwxyz0123"],
    ],
)
def test_secrets_are_masked(command: list[str]) -> None:
    kept = " ".join(masked_command(command))
    assert SECRET not in kept
    assert "abcdefghijkl" not in kept
    assert MASK in kept


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py", "--tokenizer", "bert-base", "--epochs", "3"],
        ["python", "train.py", "--max-tokens", "512", "--num_tokens=9"],
        ["python", "train.py", "--keyframes", "5", "--monkey", "x", "--author", "me"],
        ["ls", "https://example.org/path?page=2"],
        ["python", "-c", "print('a note: value')"],
    ],
)
def test_what_is_no_secret_stays(command: list[str]) -> None:
    assert list(masked_command(command)) == command


def test_an_option_after_a_secret_option_is_not_its_value() -> None:
    assert masked_command(["x", "--auth", "--verbose", "y"]) == ("x", "--auth", "--verbose", "y")


@given(st.lists(st.text(), min_size=1))
def test_any_command_keeps_its_length(command: list[str]) -> None:
    assert len(masked_command(command)) == len(command)
    assert all(isinstance(word, str) for word in masked_command(command))


@given(st.text(st.characters(categories=["L", "N"]), min_size=4), st.text())
def test_a_value_after_token_never_survives(secret: str, rest: str) -> None:
    kept = masked_command(["x", "--token", secret, "--token=" + secret])
    assert kept == ("x", "--token", MASK, "--token=" + MASK)
    assert masked_text(rest).count(MASK) >= rest.count(MASK)


def test_only_listed_variables_are_kept() -> None:
    environment = {
        "SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "0,1", "OMP_NUM_THREADS": "4",
        "HOME": "/home/me", "WANDB_API_KEY": SECRET, "SLURM_JWT": SECRET, "MY_TOKEN": SECRET,
        "XLA_FLAGS": "--token=x", "PATH": "/bin",
    }  # fmt: skip
    kept = kept_environment(environment)
    assert list(kept) == ["CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "SLURM_JOB_ID", "XLA_FLAGS"]
    assert SECRET not in repr(kept)


def test_bytes_that_are_no_text_can_be_written_down() -> None:
    (kept,) = masked_command(["\udcff\udcfe.py"])
    assert kept.encode("utf-8") == rb"\udcff\udcfe.py"


@pytest.mark.parametrize(
    "word",
    [
        f"--env=HF_TOKEN={SECRET}", f"--export=ALL,HF_TOKEN={SECRET}", f"++wandb.api_key={SECRET}",
        f'{{"api_key": "{SECRET}"}}', f'os.environ["HF_TOKEN"]="{SECRET}"',
    ],
)  # fmt: skip
def test_secrets_inside_one_word(word: str) -> None:
    assert SECRET not in " ".join(masked_command(["x", word]))


@pytest.mark.parametrize(
    "url",
    [
        f"https://me.blob.core.windows.net/data/a.tar?sv=2022-11-02&sp=r&sig={SECRET}",
        f"postgresql://me:p@{SECRET}@db.example.org:5432/runs",
    ],
)
def test_secrets_inside_urls(url: str) -> None:
    (_, kept) = masked_command(["x", url])
    assert SECRET not in kept
    assert kept.startswith(url[:8])


def test_tags_and_control_characters() -> None:
    assert masked_tags({"api_key": SECRET, "lr": "0.1"}) == {"api_key": MASK, "lr": "0.1"}
    assert masked_text("x\x1b]0;title\x07") == r"x\x1b]0;title\x07"
    assert masked_text("two\nlines\tand a tab") == "two\nlines\tand a tab"
