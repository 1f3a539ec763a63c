"""Settings from file, environment and flags; and every sample that the repository ships."""

import dataclasses
from pathlib import Path

import pytest

from ahead_ldp.service.server.config import Settings, settings_table

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"


def test_later_sources_win(tmp_path):
    path = tmp_path / "ahead.toml"
    path.write_text('host = "0.0.0.0"\nport = 1\nmax_batch = 7\nwindow_ms = 3\n')
    found = Settings.load(path, {"AHEAD_PORT": "2", "AHEAD_MAX_BATCH": "8", "OTHER": "x"}, {"max_batch": "9"})
    assert (found.host, found.port, found.max_batch, found.window_ms) == ("0.0.0.0", 2, 9, 3.0)


def test_variables_of_other_commands_are_left_alone():
    assert Settings.load(environment={"AHEAD_TOKEN": "x", "AHEAD_SERVER": "y"}) == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1\n", "prot"),
        ('port = "1"\n', "port"),
        ("port = 70000\n", "port"),
        ("metrics = 1\n", "metrics"),
        ("max_batch = 0\n", "max_batch"),
        ("rate_per_s = -1.0\n", "rate_per_s"),
        ('log_level = "loud"\n', "log_level"),
        ("hold_z = 0.0\n", "hold_z"),
        ("= 1\n", "TOML"),
    ],
)
def test_a_bad_file_is_refused_with_the_name(tmp_path, text, message):
    path = tmp_path / "ahead.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Settings.load(path, {})


@pytest.mark.parametrize(
    ("environment", "flags"),
    [({"AHEAD_PORT": "x"}, {}), ({"AHEAD_METRICS": "yes"}, {}), ({}, {"no_such": "1"}), ({}, {"port": "x"})],
)
def test_bad_variables_and_flags_are_refused(environment, flags):
    with pytest.raises(ValueError, match="expected"):
        Settings.load(None, environment, flags)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"none\.toml"):
        Settings.load(tmp_path / "none.toml", {})


def test_the_table_has_every_setting():
    lines = settings_table().splitlines()
    assert [line.split()[0] for line in lines[1:]] == [f.name for f in dataclasses.fields(Settings)]


SAMPLES = sorted(path for path in DEPLOY.glob("*.toml") if path.name != "campaign.toml")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_sample_of_settings_loads(path):
    assert isinstance(Settings.load(path, {}), Settings)
