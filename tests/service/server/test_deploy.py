"""Every file in deploy/ is what it says: settings load, campaigns are taken, units and images start what exists."""

import configparser
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from ahead_ldp.cli.app import app
from ahead_ldp.service.server.config import PREFIX, Settings
from tests.service.server.harness import bench

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))


def unit(path):
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read_string(path.read_text())
    return parser


def check_command(words):
    """The words of a command line are options and arguments that `ahead` knows; nothing is started."""
    program = get_command(app)
    name, *rest = words
    assert program.get_command(program.make_context("ahead", []), name).make_context(name, rest).args == []


def test_the_sample_campaign_is_taken(tmp_path):
    draft = tomllib.loads((DEPLOY / "campaign.toml").read_text())
    with bench(tmp_path) as service:
        answer = service.call("POST", "/campaigns", json=draft)
        assert answer.status_code == 201, answer.text
        assert service.call("POST", f"/campaigns/{answer.json()['campaign']}/open").status_code == 200


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_start_a_command_that_exists(path):
    service = unit(path)["Service"]
    program, *words = shlex.split(service["ExecStart"].replace("%i", "8441"))
    assert Path(program).name == "ahead"
    check_command(words)
    config = DEPLOY / Path(words[words.index("--config") + 1]).name
    assert Settings.load(config, {}).shutdown_s < int(service["TimeoutStopSec"])
    assert service["KillSignal"] == "SIGTERM"


def test_the_unit_keeps_the_store_where_the_settings_say():
    store, keys = unit(DEPLOY / "ahead.service")["Service"]["StateDirectory"].split()
    settings = Settings.load(DEPLOY / "ahead.toml", {})
    assert settings.store.startswith(f"/var/lib/{store}/")
    assert settings.keys == f"/var/lib/{keys}"


def test_all_processes_of_a_database_have_one_key_directory_and_one_user():
    service = unit(DEPLOY / "ahead@.service")["Service"]
    assert Settings.load(DEPLOY / "ahead-postgres.toml", {}).keys == f"/var/lib/{service['StateDirectory']}"
    assert service["User"] == "ahead"


def test_the_proxy_agrees_with_the_settings():
    text, settings = (DEPLOY / "nginx.conf").read_text(), Settings.load(DEPLOY / "ahead.toml", {})
    assert f"    server {settings.host}:{settings.port} " in text
    assert int(re.search(r"client_max_body_size (\d+)m;", text)[1]) << 20 == settings.max_body_bytes
    assert "access_log off;" in text
    assert text.count("{") == text.count("}")
    assert settings.trusted_proxies == "127.0.0.1"


def test_the_image_copies_what_exists_and_starts_the_server():
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    for line in lines:
        if line.startswith("COPY ") and "--from" not in line:
            assert all((ROOT / word).exists() for word in line.split()[1:-1]), line
    variables = next(line for line in lines if line.startswith("ENV ")).split()[1:]
    found = dict(word.split("=", 1) for word in variables)
    assert all(name.startswith(PREFIX) for name in found)
    assert Settings.load(None, found).host == "0.0.0.0"
    entry = re.search(r'ENTRYPOINT \["[^"]*/ahead", "(\w+)"\]', "\n".join(lines))
    check_command([entry[1], "--init"])
    assert f"EXPOSE {Settings().port}" in lines
