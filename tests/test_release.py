"""A release: one version everywhere, a section of the changelog, the same bytes twice, and a wheel that works alone."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest
import yaml

from tools import release

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-01-01\n\n- A thing.\n\n## [0.1.0]\n\n- The first.\n"


def test_every_place_names_one_version():
    assert list(release.disagreements()) == []


def test_the_conda_recipe_says_what_the_package_says():
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text("utf-8"))
    recipe = yaml.safe_load((release.ROOT / "deploy/conda/recipe.yaml").read_text("utf-8"))
    package, needs = project["project"], recipe["requirements"]
    assert recipe["context"] == {"name": package["name"], "version": package["version"]}
    wanted = [re.sub("(?<=[a-z])(?=[<>=])", " ", text) for text in package["dependencies"]]
    assert needs["run"] == [f"python {package['requires-python']}", *wanted]
    assert needs["host"][-1].replace(" ", "") in project["build-system"]["requires"]
    assert recipe["about"]["summary"] == package["description"]
    scripts = [f"{name} = {place}" for name, place in package["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts


def test_another_version_is_found(tmp_path):
    (tmp_path / "js").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 0.1.0\n")
    (tmp_path / "js" / "package.json").write_text('{"version": "0.2.0"}')
    assert list(release.disagreements(tmp_path)) == ["expected version 0.2.0 in CITATION.cff, got 0.1.0"]


def test_the_changelog_gives_the_notes_of_a_version():
    assert release.section(CHANGELOG, "0.2.0") == "- A thing."
    for missing in ("Unreleased", "0.3.0"):
        with pytest.raises(LookupError, match="CHANGELOG"):
            release.section(CHANGELOG, missing)


def test_what_does_not_belong_into_a_package_is_found(tmp_path):
    wheel, sdist = tmp_path / "a.whl", tmp_path / "a.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("ahead_ldp/api.py", "ahead_ldp/__pycache__/api.cpython-311.pyc"):
            archive.writestr(name, "")
    with tarfile.open(sdist, "w:gz") as archive:
        for name in ("docs/index.md", "first.db", "build/site/index.html"):
            archive.addfile(tarfile.TarInfo(f"a-0.1.0/{name}"))
    found = list(release.strays([wheel, sdist]))
    assert len(found) == 3
    assert all(word in " ".join(found) for word in (".pyc", "first.db", "build/site"))


def test_the_bill_of_materials_lists_the_lock():
    document = json.loads(release.bill_of_materials())
    named = {c["name"]: c["version"] for c in document["components"]}
    assert {"numpy", "rich", "scipy", "typer"} <= set(named)
    assert document["metadata"]["component"]["version"] == release.version()
    assert release.bill_of_materials() == release.bill_of_materials()


@pytest.mark.soak
def test_two_builds_have_the_same_bytes_and_the_wheel_runs_alone(tmp_path):
    built = release.build(tmp_path / "one", 1_700_000_000)
    assert built == release.build(tmp_path / "two", 1_700_000_000)
    assert list(release.strays(sorted((tmp_path / "one").iterdir()))) == []
    (wheel,) = (tmp_path / "one").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", f"{wheel}[server,plot]"], check=True)

    def run(*words):
        ahead = str(tmp_path / "venv" / "bin" / "ahead")
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "MPLBACKEND": "Agg"}
        return subprocess.run([ahead, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout

    assert run("--version").strip() == release.version()
    assert "intervals hold the truth" in run("demo", "--people", "5000")
    assert (tmp_path / "out" / "demo.png").exists()
