"""A bad link: `python wire.py A B LATE TWICE` carries frames between two tap devices.

Every frame is late by up to LATE seconds, so that frames overtake one another, and a share TWICE comes a second time.
It runs until it is killed, on the standard library alone.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

_TUNSETIFF, _TAP, _NO_HEADER = 0x400454CA, 0x0002, 0x1000
_LONGEST = 2048


def opened(name: str) -> int:
    """The end of a tap device that is not the kernel's."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP | _NO_HEADER))
    return handle


def carry(one: int, other: int, late_s: float, twice: float) -> None:
    """For ever."""
    under_way: list[tuple[float, int, int, bytes]] = []
    rng, number = random.Random(1), 0
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else 1.0
        for handle in select.select([one, other], [], [], wait)[0]:
            frame, to = os.read(handle, _LONGEST), other if handle == one else one
            for _ in range(1 + (rng.random() < twice)):
                number += 1
                heapq.heappush(under_way, (time.monotonic() + rng.random() * late_s, number, to, frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(under_way)
            try:
                os.write(to, frame)
            except OSError:  # the other side is down: the frame is lost
                continue


if __name__ == "__main__":
    ends = opened(sys.argv[1]), opened(sys.argv[2])
    print("carrying", flush=True)
    carry(*ends, float(sys.argv[3]), float(sys.argv[4]))
