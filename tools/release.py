"""`make release`: check, build twice, compare, and say what is left to do by somebody with an identity.

Nothing leaves this machine: no tag is made or pushed and nothing is published. RELEASING.md has the whole way.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools import package_page, system
from tools.docs import ROOT

DIST = ROOT / "dist"
LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^ ;\\]+)")
CLIENT = ("package.json", "package-lock.json")  # files of js/ that name the version
NEXT = """\
Left to do, by somebody with the rights for it (RELEASING.md):
  git tag -s v{version} -m "ahead-ldp {version}"
  git push origin v{version}        the workflow release.yml builds the same bytes and publishes them
"""


def version(root: Path = ROOT) -> str:
    """The version of the package: it is written in pyproject.toml and nowhere else by hand."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def section(changelog: str, wanted: str) -> str:
    """The text of a version in the changelog; LookupError if it has none."""
    found = re.search(rf"^## \[{re.escape(wanted)}\][^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise LookupError(f"expected a section [{wanted}] in CHANGELOG.md, got none")
    return found[1].strip()


def notes(root: Path = ROOT) -> str:
    """The changelog's section of this version, with links that lead somewhere away from the repository too."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    text = section((root / "CHANGELOG.md").read_text("utf-8"), project["version"])
    return package_page.shown(text, project["version"], project.get("urls", {}).get("Source")) + "\n"


def disagreements(root: Path = ROOT) -> Iterator[str]:
    """Every place that names another version than pyproject.toml."""
    wanted = version(root)
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    npm = {f"js/{name}": json.loads((root / "js" / name).read_text("utf-8"))["version"] for name in CLIENT}
    for place, said in {"CITATION.cff": cited and cited[1], **npm}.items():
        if said != wanted:
            yield f"expected version {wanted} in {place}, got {said}"


def build(folder: Path, epoch: int, root: Path = ROOT) -> dict[str, str]:
    """Build wheel and sdist into a folder with a fixed date; the SHA-256 of each file by its name."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=root, env=env, check=True,
                   capture_output=True)  # fmt: skip
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def pack_client(folder: Path, root: Path = ROOT) -> dict[str, str]:
    """Build the npm package of the browser's client from a copy of js/ into a folder; its SHA-256 by its name.

    Empty where Node, or the locked packages of js/, are missing.
    """
    found, packages = system.npm(), root / "js" / "node_modules"
    if found is None or not packages.exists():
        return {}
    program, environment = found
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        copy, served = Path(scratch) / "js", Path("src/ahead_ldp/service/dashboard/static")
        shutil.copytree(root / "js", copy, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
        (copy / "node_modules").symlink_to(packages.resolve())
        (Path(scratch) / served).mkdir(parents=True)  # the build also writes what the server serves
        shutil.copy(root / "LICENSE", copy)
        words = ["pack", "--loglevel=error", "--pack-destination", str(folder.resolve())]  # builds by itself, before
        subprocess.run([program, *words], cwd=copy, env=environment, check=True, capture_output=True)
        page = "participant.js"
        if (Path(scratch) / served / page).read_bytes() != (root / served / page).read_bytes():
            raise ValueError(f"expected {served / page} to be what js/ builds, got another file: npm run build in js/")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.tgz"))}


def strays(files: Sequence[Path]) -> Iterator[str]:
    """What must not be in a package: caches, stores, keys, built output, links; of the client, all but what it is."""
    bad = re.compile(r"__pycache__|\.pyc$|\.db$|(^|/)\.(?!github/)|\.keys/|node_modules|(^|/)(build|dist)/")
    client = re.compile(r"package\.json|LICENSE|README\.md|dist/(types/(languages/)?)?[\w.-]+\.(js|d\.ts)")
    for file in files:
        if file.suffix == ".tgz":
            with tarfile.open(file) as archive:
                inside = [name.partition("/")[2] for name in archive.getnames()]
            yield from (f"{file.name}: {name}" for name in inside if not client.fullmatch(name))
            continue
        if file.suffix == ".whl":
            names = zipfile.ZipFile(file).namelist()
        else:
            with tarfile.open(file) as archive:
                names = [name.partition("/")[2] for name in archive.getnames()]
        yield from (f"{file.name}: {name}" for name in names if bad.search(name) and name != ".gitignore")


def bill_of_materials(root: Path = ROOT) -> bytes:
    """What the locked environment consists of, as CycloneDX 1.5, without a date: the same bytes each time."""
    packages = [m for line in (root / "requirements.lock").read_text("utf-8").splitlines() if (m := LOCKED.match(line))]
    components = [
        {"type": "library", "name": m["name"], "version": m["version"], "purl": f"pkg:pypi/{m['name']}@{m['version']}"}
        for m in packages
    ]
    own = {
        "type": "library",
        "name": "ahead-ldp",
        "version": version(root),
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": own}}
    return json.dumps({**document, "components": components}, indent=1).encode() + b"\n"


def git(*words: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Check, build twice, compare; leave the files in dist/; 1 if anything is wrong."""
    wrong = list(disagreements())
    wanted = version()
    if changed := git("status", "--porcelain", "--untracked-files=no"):
        wrong.append(f"expected no uncommitted change, got {len(changed.splitlines())} files")
    try:
        said = notes()
    except LookupError as missing:
        said, wrong = "", [*wrong, str(missing)]
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    epoch = int(git("log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        built = {**build(Path(first), epoch), **pack_client(Path(first))}
        if built != {**build(Path(second), epoch), **pack_client(Path(second))}:
            print("expected the same bytes from two builds, got others", file=sys.stderr)
            return 1
        DIST.mkdir(exist_ok=True)
        for name in built:
            (DIST / name).write_bytes((Path(first) / name).read_bytes())
    files = [DIST / name for name in built]
    if not any(file.suffix == ".tgz" for file in files):
        print("without the npm package: it needs Node and the packages of js/ (make system)")
    if found := list(strays(files)):
        print("\n".join(found), file=sys.stderr)
        return 1
    python = [str(file) for file in files if file.suffix != ".tgz"]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *python], check=True)
    (DIST / f"ahead_ldp-{wanted}.cdx.json").write_bytes(bill_of_materials())
    (DIST / "NOTES.md").write_text(said, encoding="utf-8")
    (DIST / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in built.items()), encoding="utf-8")
    print("\n".join(f"{digest}  {name}" for name, digest in built.items()))
    print("built twice with the same bytes; in dist/: packages, checksums, notes, bill of materials\n")
    print(NEXT.format(version=wanted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
