"""Settings: file, environment, and mistakes in both."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from teho.config.settings import Settings, load_settings, parse_period, settings_file
from teho.errors import InputError, UnitError


@pytest.fixture
def file() -> Path:
    path = settings_file(os.environ)
    path.parent.mkdir(parents=True)
    return path


def test_without_a_file_the_defaults_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEHO_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/data/me")
    settings = load_settings()
    assert settings == Settings()
    assert settings.home_directory == Path("/data/me/teho")
    assert settings.period_s == 1.0


def test_the_environment_wins_over_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('every = "2s"\nreport = "full"\n')
    monkeypatch.setenv("TEHO_EVERY", "500ms")
    settings = load_settings()
    assert (settings.period_s, settings.report) == (0.5, "full")


def test_limits_of_automatic_recordings(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (load_settings().keep_s, load_settings().keep_bytes) == (90 * 86400, 5e9)
    file.write_text('keep = "2d"\nkeep_gb = 3\n')
    assert (load_settings().keep_s, load_settings().keep_bytes) == (2 * 86400, 3e9)
    monkeypatch.setenv("TEHO_KEEP_GB", "0.5")
    assert load_settings().keep_bytes == 5e8
    for wrong in ("-1", "nan", "inf"):
        monkeypatch.setenv("TEHO_KEEP_GB", wrong)
        with pytest.raises(InputError, match="keep_gb"):
            _ = load_settings().keep_bytes
    monkeypatch.setenv("TEHO_KEEP_GB", "much")
    with pytest.raises(InputError, match="TEHO_KEEP_GB"):
        load_settings()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('evry = "2s"', ["config.toml", "evry", "did you mean 'every'?"]),
        ("every = 2", ["config.toml", "every"]),
        ('report = "loud"', ["config.toml", "report"]),
        ("every = ", ["config.toml"]),
        ('zzz = "1"', ["config.toml", "zzz", "known are"]),
    ],
)
def test_a_mistake_in_the_file_names_file_and_key(
    file: Path, content: str, words: list[str]
) -> None:
    file.write_text(content)
    with pytest.raises(InputError) as error:
        load_settings()
    for word in words:
        assert word in str(error.value)


def test_a_mistake_in_the_environment_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEHO_REPORT", "loud")
    with pytest.raises(InputError, match="TEHO_REPORT"):
        load_settings()


def test_a_period_has_bounds() -> None:
    assert parse_period("100ms", "--every") == 0.1
    for text in ("10ms", "2h"):
        with pytest.raises(InputError, match="--every"):
            parse_period(text, "--every")
    with pytest.raises(UnitError):
        parse_period("often", "--every")
