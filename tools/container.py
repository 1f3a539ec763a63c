"""The steps of deploy/Containerfile without a container engine: `python -m tools.container ROOT`, as root.

ROOT is a bare system with Python, for example by
`debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates trixie ROOT`. Every stage gets a copy of
it. FROM, COPY, RUN, USER, ENV and ENTRYPOINT are done in it by chroot. The entry point is started and asked whether it
is ready. This shows that the steps work on a bare system and that what they make starts as its own user. It does not
show the base image, its layers, volumes, health checks, networks or an engine's own limits.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
FILE = SOURCE / "deploy" / "Containerfile"
START_S = 120
# What pip needs to know of the machine: where packages are.
_FROM_HERE = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")


@dataclass
class Stage:
    """One system in the making."""

    root: Path
    folder: str = "/"
    user: str = "root"
    environment: dict[str, str] = field(default_factory=dict)
    entry: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """A path of the stage, as this process sees it."""
        return self.root / os.path.join(self.folder, path).lstrip("/")

    def command(self, words: list[str]) -> list[str]:
        """Words to be run in the stage, as its user."""
        given = [f"{name}={value}" for name, value in self.environment.items()]
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        enter = ["chroot", *([f"--userspec={self.user}"] if self.user != "root" else []), str(self.root)]
        return [*enter, "env", path, *given, "sh", "-c", f'cd {self.folder} && exec "$@"', "sh", *words]


def instructions(text: str) -> list[tuple[str, str]]:
    """Name and words of every instruction."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


def build(base: Path, folder: Path) -> Stage:
    """All stages; the last one."""
    stages: dict[str, Stage] = {}
    stage = Stage(base)
    for name, words in instructions(FILE.read_text()):
        print(name, words, flush=True)
        if name == "FROM":
            label = words.partition(" AS ")[2] or "last"
            stage = stages[label] = Stage(folder / label)
            subprocess.run(["cp", "-a", "--reflink=auto", base, stage.root], check=True)
            for path in filter(os.path.exists, _FROM_HERE):
                shutil.copy(os.path.realpath(path), _made(stage.root / path.lstrip("/")))
            python = stage.root / "usr/local/bin/python"  # the official image has its Python there
            if not python.exists():
                python.symlink_to("/usr/bin/python3")
        elif name == "WORKDIR":
            stage.folder = words
            stage.inside("").mkdir(parents=True, exist_ok=True)
        elif name == "COPY":
            _copy(stage, stages, shlex.split(words))
        elif name == "RUN":
            subprocess.run(stage.command(["sh", "-ec", words]), check=True)
        elif name == "USER":
            stage.user = words
        elif name == "ENV":
            stage.environment |= dict(word.split("=", 1) for word in shlex.split(words))
        elif name == "ENTRYPOINT":
            stage.entry = json.loads(words)
    return stage


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    return path


def _copy(stage: Stage, stages: dict[str, Stage], words: list[str]) -> None:
    source = SOURCE
    if words[0].startswith("--from="):
        source = stages[words.pop(0).removeprefix("--from=")].root
    *names, to = words
    for name in names:
        found, target = source / name.lstrip("/"), stage.inside(to)
        if found.is_dir():
            shutil.copytree(found, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(found, target / found.name if to.endswith("/") or target.is_dir() else target)


def start(stage: Stage, port: int = 8449) -> str:
    """Start the entry point, ask it whether it is ready, stop it; what it answered."""
    stage.environment["AHEAD_PORT"] = str(port)
    process = subprocess.Popen(stage.command([*stage.entry, "--init"]), stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_S
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/ready", timeout=5) as answer:
                    return str(answer.read().decode())
            except OSError:
                if time.monotonic() > until or process.poll() is not None:
                    raise
                time.sleep(0.2)
    finally:
        process.terminate()
        print("exit", process.wait(60))


def main(base: str) -> None:
    """Build beside the root, start, and remove what was made."""
    folder = Path(base).with_name(Path(base).name + "-stages")
    folder.mkdir()
    try:
        print(start(build(Path(base), folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
