"""A release: one version everywhere, a section of the changelog, the same bytes twice, and a wheel that works alone."""

import json
import re
import tarfile
import tomllib
import zipfile

import pytest
import yaml

from tools import package_page, release

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
    (tmp_path / "js" / "package-lock.json").write_text('{"version": "0.2.0"}')
    assert list(release.disagreements(tmp_path)) == ["expected version 0.2.0 in CITATION.cff, got 0.1.0"]
    (tmp_path / "CITATION.cff").write_text("version: 0.2.0\n")
    (tmp_path / "js" / "package-lock.json").write_text('{"version": "0.1.0"}')
    assert list(release.disagreements(tmp_path)) == ["expected version 0.2.0 in js/package-lock.json, got 0.1.0"]


def test_the_citation_has_the_day_of_the_release():
    cited = yaml.safe_load((release.ROOT / "CITATION.cff").read_text("utf-8"))
    changelog = (release.ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{release.version()}] - {cited['date-released']}\n" in changelog


def test_the_workflow_publishes_what_was_built_and_knows_no_password():
    text = (release.ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    publishing = {name: job for name, job in jobs.items() if name != "build"}
    assert set(publishing) == {"publish", "publish-npm"}
    for job in publishing.values():
        assert job["permissions"] == {"id-token": "write"}
        assert job["needs"] == "build"
    assert "make release" in [step.get("run") for step in jobs["build"]["steps"]]
    assert "secrets." not in text


def test_the_changelog_gives_the_notes_of_a_version():
    assert release.section(CHANGELOG, "0.2.0") == "- A thing."
    for missing in ("Unreleased", "0.3.0"):
        with pytest.raises(LookupError, match="CHANGELOG"):
            release.section(CHANGELOG, missing)


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("", "how"),
        ('[project.urls]\nSource = "https://example.org/r"\n', "[how](https://example.org/r/blob/v0.2.0/docs/how.md)"),
    ],
    ids=["no address", "an address"],
)
def test_the_notes_have_no_link_that_leads_nowhere(tmp_path, address, link):
    (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "0.2.0"\n{address}')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.replace("A thing", "A thing: [how](docs/how.md)"))
    assert release.notes(tmp_path) == f"- A thing: {link}.\n"


def test_the_page_of_a_package_index_has_no_link_that_leads_nowhere():
    text = "![A tree](docs/tree.svg)\n\n[how](docs/how.md#why), [web](https://example.org)\n\n```text\n[a](b)\n```\n"
    assert package_page.shown(text, "0.1.0") == "\n\nhow, [web](https://example.org)\n\n```text\n[a](b)\n```\n"
    linked = package_page.shown(text, "0.1.0", "https://example.org/repo/")
    assert "![A tree](https://example.org/repo/raw/v0.1.0/docs/tree.svg)" in linked
    assert "[how](https://example.org/repo/blob/v0.1.0/docs/how.md#why)" in linked


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


def test_two_builds_have_the_same_bytes(tmp_path):
    """That the wheel runs where nothing else is, tests/test_install.py shows."""
    built = release.build(tmp_path / "one", 1_700_000_000)
    assert built == release.build(tmp_path / "two", 1_700_000_000)
    assert list(release.strays(sorted((tmp_path / "one").iterdir()))) == []
    (wheel,) = (tmp_path / "one").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
        (about,) = [archive.read(name).decode() for name in inside if name.endswith("/METADATA")]
    assert {name.partition("/")[0] for name in inside} == {"ahead_ldp", f"ahead_ldp-{release.version()}.dist-info"}
    scripts = {name.rpartition("/")[2] for name in inside if name.endswith((".js", ".css"))}
    assert scripts == {"dashboard.js", "page.css", "participant.js"}  # ours: nothing of others is brought along
    assert "## Three lines of Python" in about
    assert not re.search(r"\]\((?!https://)", about.partition("\n\n")[2])  # README's links lead into the repository
    (sdist,) = (tmp_path / "one").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"js/src/participant.ts", "js/package-lock.json", "examples/embed/index.html"} <= names  # what is built from
    assert not any(name.startswith("js/node_modules") for name in names)
    assert {"pyproject.toml", "LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "requirements.lock"} <= names
