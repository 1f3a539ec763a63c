"""Every file in deploy/ is what it says: settings load, campaigns are taken, units and images start what exists."""

import configparser
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from typer.main import get_command

from ahead_ldp.cli.app import app
from ahead_ldp.service.server.config import PREFIX, Settings
from tests.needs import needed
from tests.service.server.harness import bench
from tests.service.system.processes import free_port
from tools import container, system

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
DEV = "pip install 'ahead-ldp[dev]'"


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


def test_the_steps_of_the_image_are_those_that_are_tried_without_an_engine():
    """tools/container.py does every instruction that says what is in the image, and knows the others."""
    found = container.instructions((DEPLOY / "Containerfile").read_text())
    done = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "ENTRYPOINT"}
    assert {name for name, _ in found} - done == {"VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_has_nothing_to_say_about_the_units(path, tmp_path, systemd):
    """But for the program, which is another one here."""
    unit = tmp_path / path.name.replace("@", "@8441")
    unit.write_text(path.read_text().replace("/opt/ahead/bin/ahead", sys.executable))
    done = subprocess.run([systemd, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def systemd():
    return needed(shutil.which("systemd-analyze"), "systemd-analyze", system.how_to_install("systemd-analyze"))


def test_what_the_unit_starts_gets_ready_and_ends_when_it_is_told(tmp_path):
    """Its command with its settings, in a folder of this test; there is no systemd as the first process here."""
    service = unit(DEPLOY / "ahead.service")["Service"]
    port, config = free_port(), tmp_path / "ahead.toml"
    text = (DEPLOY / "ahead.toml").read_text().replace("/var/lib/", f"{tmp_path}/").replace("8440", str(port))
    config.write_text(text)
    (tmp_path / "ahead").mkdir()
    _, *words = shlex.split(service["ExecStart"].replace("/etc/ahead/ahead.toml", str(config)))
    command = [sys.executable, "-m", "ahead_ldp", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout.readline().startswith(b"serving at")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/ready", timeout=30) as answer:
                assert answer.status == 200
            process.send_signal(signal.Signals[service["KillSignal"]])
            assert process.wait(int(service["TimeoutStopSec"])) == 0
        finally:
            process.kill()


def test_the_compose_file_is_one():
    """By the schema that is published for them."""
    needed(find_spec("check_jsonschema"), "check-jsonschema", DEV)
    import jsonschema
    from check_jsonschema.builtin_schemas import get_builtin_schema

    schema = get_builtin_schema("vendor.compose-spec")
    record = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    jsonschema.validate(record, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**record, "services": {"server": {"imagine": "x"}}}, schema)
    given = record["services"]["server"]["environment"]
    settings = Settings.load(None, {name: text for name, text in given.items() if name.startswith(PREFIX)})
    assert settings.store.startswith("postgresql://")
    (network,) = record["networks"]["default"]["ipam"]["config"]
    assert settings.trusted_proxies == network["subnet"]
    assert given["PGPASSWORD"] == record["services"]["database"]["environment"]["POSTGRES_PASSWORD"]


def test_the_manifests_are_what_kubernetes_takes():
    """By the schemas that are published for them; the settings in them load."""
    needed(find_spec("kubernetes_validate"), "kubernetes-validate", DEV)
    import kubernetes_validate as validate

    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "ahead.yaml").read_text()))
    for manifest in manifests:
        validate.validate(manifest, validate.latest_version(), strict=True)
    (deployment,) = (one for one in manifests if one["kind"] == "Deployment")
    with pytest.raises(validate.ValidationError):
        validate.validate({**deployment, "spec": {"copies": 2}}, validate.latest_version(), strict=True)
    (settings,) = (one["data"]["ahead.toml"] for one in manifests if one["kind"] == "ConfigMap")
    grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert tomllib.loads(settings)["shutdown_s"] + 5 < grace
    (program,) = deployment["spec"]["template"]["spec"]["containers"]
    check_command(["serve", *program["args"]])
    # libpq needs the authority for verify-full, and reads no password from a file that a group may read.
    asked = parse_qs(urlsplit(tomllib.loads(settings)["store"]).query)
    (mounted,) = (one["mountPath"] for one in program["volumeMounts"] if one["name"] == "authority")
    assert asked == {"sslmode": ["verify-full"], "sslrootcert": [f"{mounted}/ca.pem"]}
    assert [(one["name"], list(one["valueFrom"])) for one in program["env"]] == [("PGPASSWORD", ["secretKeyRef"])]
