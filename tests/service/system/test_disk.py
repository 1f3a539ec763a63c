"""A whole server on a disk that fills up: 503, nothing acknowledged is lost, and with room it goes on by itself."""

import os
import resource
from urllib.parse import quote

import pytest

from ahead_ldp.device.canonical import digest
from ahead_ldp.device.frames import HEADER_LENGTH, Header
from tests.service.server.harness import BINARY, TEXTS
from tests.service.system.processes import Server, request

CELLS = 1024
FRAME = 16 + CELLS // 8


def limit_files(server, size):
    """No file of the server grows beyond this: a write in the middle of a commit fails, as on a full disk."""
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limits of another process cannot be set here")
def test_a_full_disk_is_503_and_nothing_is_lost(tmp_path):
    path = tmp_path / "store.db"
    server = Server(path)
    try:
        draft = {
            **TEXTS, "attributes": [f"x=integer,0,{CELLS - 1}"], "epsilon": "1", "minimum": 5,
            "method": {"name": "flat", "choices": {"oracle": "oue"}}, "closing": {"kind": "manual"},
        }  # fmt: skip
        campaign = request(server.url, "POST", "/campaigns", server.token, json=draft).json()["campaign"]
        request(server.url, "POST", f"/campaigns/{campaign}/open", server.token, json={})
        (question,) = request(server.url, "GET", f"/campaigns/{campaign}/waves/1").json()["questions"]
        header, route = Header(campaign, digest(question)).encode(), f"/campaigns/{campaign}/reports"

        def upload(frames):
            return request(server.url, "POST", route, content=header + b"".join(frames), headers=BINARY)

        def new(n):
            return [os.urandom(FRAME) for _ in range(n)]

        acknowledged, refused = [], []
        acknowledged += (first := new(50))
        assert upload(first).json()["accepted"] == 50
        limit_files(server, max(f.stat().st_size for f in tmp_path.iterdir()) + 60_000)
        for n in [1, 50] * 40:
            frames = new(n)
            answer = upload(frames)
            if answer.status_code == 503:
                assert int(answer.headers["retry-after"]) > 0
                assert answer.json()["type"].endswith(":unavailable")
                refused.append(frames)
            else:
                assert (answer.status_code, answer.json()["accepted"]) == (200, n)
                acknowledged += frames
        assert len(refused) > 10
        limit_files(server, 0)  # now not even a mark has room
        assert request(server.url, "GET", "/ready").status_code == 503
        assert request(server.url, "GET", "/health").status_code == 200
        assert request(server.url, "GET", f"/campaigns/{campaign}/state").json()["state"] == "open"
        limit_files(server, resource.RLIM_INFINITY)
        for frames in refused:  # the same bytes again
            assert upload(frames).json()["accepted"] == len(frames)
            acknowledged += frames
        assert request(server.url, "GET", "/ready").status_code == 200
        server.kill()
        server.start()
        stored = f"/campaigns/{campaign}/waves/1/reports?group={quote(question['group'])}"
        data = request(server.url, "GET", stored, server.token).content[HEADER_LENGTH:]
        assert sorted(data[i : i + FRAME] for i in range(0, len(data), FRAME)) == sorted(acknowledged)
        assert not [line for line in server.log if "Traceback" in line]
    finally:
        server.stop()
