"""Several hosts on one machine: network namespaces with addresses of their own, joined by a bridge.

A link can be cut, and it can be made bad: frames are late, or come twice. The kernel's netem is often not there, so a
process carries the frames of a bad link from one tap device to another (tests/wire.py).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import count as counting
from pathlib import Path
from typing import Any

_NUMBERS = counting()  # of the hosts of this process: the kernel takes a namespace down after its name is free again


class NoHosts(Exception):
    """Namespaces cannot be made here; the message says why."""


class Hosts:
    """Hosts 10.N.0.2, 10.N.0.3, ... behind a bridge whose address, 10.N.0.1, is this process's."""

    def __init__(self, count: int) -> None:
        if shutil.which("ip") is None:
            raise NoHosts("`ip` of iproute2 is not installed")
        if os.geteuid() != 0:
            raise NoHosts("network namespaces need root")
        self.names, self._tag, self._bridge, self._net = list[str](), "", "", 0
        self._started = list[subprocess.Popen[bytes]]()
        self._wires = dict[int, subprocess.Popen[bytes]]()
        try:
            self._make(count)
        except subprocess.CalledProcessError as error:
            self.remove()
            if "File exists" in error.stderr:  # ours is still there: a fault, and no want of a right
                raise
            raise NoHosts(f"no network namespace can be made here: {error.stderr.strip()}") from error

    def _make(self, count: int) -> None:
        tag = f"ah{os.getpid() % 100_000}{next(_NUMBERS) % 100:02}"
        for net in range(40, 250):
            if not run("ip", "-o", "addr", "show", "to", f"10.{net}.0.0/24").stdout:
                self._net = net
                break
        self._tag, self._bridge = tag, f"{tag}b"
        run("ip", "link", "add", self._bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.address(0)}/24", "dev", self._bridge)
        run("ip", "link", "set", self._bridge, "up")
        for i in range(1, count + 1):
            name, inside, outside = f"{tag}n{i}", f"{tag}i{i}", f"{tag}o{i}"
            run("ip", "netns", "add", name)
            self.names.append(name)
            run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside)
            run("ip", "link", "set", outside, "master", self._bridge, "up")
            run("ip", "link", "set", inside, "netns", name)
            run("ip", "-n", name, "addr", "add", f"{self.address(i)}/24", "dev", inside)
            run("ip", "-n", name, "link", "set", inside, "up")
            run("ip", "-n", name, "link", "set", "lo", "up")

    def address(self, host: int) -> str:
        """The address of a host; 0 is this process's own."""
        return f"10.{self._net}.0.{host + 1}"

    def start(self, host: int, command: Sequence[object], **options: Any) -> subprocess.Popen[bytes]:
        """A process on a host."""
        inside = ["ip", "netns", "exec", self.names[host - 1], *map(str, command)]
        process = subprocess.Popen(inside, start_new_session=True, **options)
        self._started.append(process)
        return process

    def processes(self, host: int) -> list[int]:
        """All processes of a host now."""
        return [int(pid) for pid in run("ip", "netns", "pids", self.names[host - 1]).stdout.split()]

    def kill(self, host: int) -> int:
        """SIGKILL to everything on a host; how many processes that were."""
        killed = 0
        while pids := self.processes(host):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        return killed

    def cut(self, host: int) -> None:
        """Nothing comes or goes any more, and nobody is told."""
        run("ip", "link", "set", f"{self._tag}o{host}", "down")

    def mend(self, host: int) -> None:
        """Undo ``cut``."""
        run("ip", "link", "set", f"{self._tag}o{host}", "up")

    def worsen(self, host: int, late_s: float, twice: float) -> None:
        """Every frame of a host is late by up to so much, and a share of them comes twice."""
        outside, own, near, far = (f"{self._tag}{kind}{host}" for kind in "ocxy")
        run("ip", "link", "add", own, "type", "bridge")
        for tap in (near, far):
            run("ip", "tuntap", "add", "dev", tap, "mode", "tap")
        command = [sys.executable, Path(__file__).with_name("wire.py"), near, far, str(late_s), str(twice)]
        wire = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._wires[host] = wire
        if wire.stdout is None or wire.stdout.readline() != b"carrying\n":
            raise NoHosts("no frames can be carried here: /dev/net/tun")
        for device, bridge in ((outside, own), (near, own), (far, self._bridge)):
            run("ip", "link", "set", device, "master", bridge, "up")
        run("ip", "link", "set", own, "up")

    def better(self, host: int) -> None:
        """Undo ``worsen``."""
        wire = self._wires.pop(host)
        run("ip", "link", "set", f"{self._tag}o{host}", "master", self._bridge)
        wire.kill()
        wire.communicate(timeout=60)
        for kind in "xyc":
            run("ip", "link", "del", f"{self._tag}{kind}{host}", check=False)

    def remove(self) -> None:
        """End what runs on the hosts, and take them down."""
        for i in list(self._wires):
            self.better(i)
        for i, name in enumerate(self.names, start=1):
            self.kill(i)
            run("ip", "link", "del", f"{self._tag}o{i}", check=False)
            run("ip", "netns", "del", name, check=False)
        for process in self._started:
            process.wait(60)
        if self._bridge:
            run("ip", "link", "del", self._bridge, check=False)


def run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A command of the system."""
    return subprocess.run(command, capture_output=True, text=True, check=check, timeout=60)
