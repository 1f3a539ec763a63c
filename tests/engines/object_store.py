"""An S3-compatible store of what lies in a folder, on the loopback: enough of it for Arrow to list and to read."""

from __future__ import annotations

import email.utils
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_PAGE = 2  # keys in one answer to a listing, so that there are more answers than one


@contextmanager
def object_store(folder: Path) -> Iterator[str]:
    """Every folder in ``folder`` is a bucket; what stands behind the question mark of an address in this store."""

    class Handler(_Handler):
        root = folder

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"endpoint_override=127.0.0.1:{server.server_address[1]}&scheme=http&region=us-east-1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    root: Path
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer goes out in one piece: a client that gets its head alone waits for 40 ms

    def do_HEAD(self) -> None:
        """What an object is."""
        self._object()

    def do_GET(self) -> None:
        """A listing of a bucket, or an object or a part of it."""
        asked = urlsplit(self.path)
        settings = {name: values[0] for name, values in parse_qs(asked.query, keep_blank_values=True).items()}
        if settings.get("list-type") == "2":
            self._list(unquote(asked.path).strip("/"), settings)
        else:
            self._object()

    def _object(self) -> None:
        file = self.root / unquote(urlsplit(self.path).path).lstrip("/")
        if "authorization" not in self.headers:
            self._answer(403)
        elif file.parent == self.root and file.is_dir():  # a bucket
            self._answer(200)
        elif not file.is_file():
            self._answer(404)
        else:
            data = file.read_bytes()
            first, last = 0, len(data) - 1
            if part := self.headers.get("range"):
                start, _, end = part.removeprefix("bytes=").partition("-")
                first, last = int(start), min(int(end or last), last)
            about = {"content-range": f"bytes {first}-{last}/{len(data)}"} if part else {}
            self._answer(206 if part else 200, data[first : last + 1], about)

    def _list(self, bucket: str, settings: dict[str, str]) -> None:
        prefix, delimiter = settings.get("prefix", ""), settings.get("delimiter", "")
        top = self.root / bucket
        if not top.is_dir():
            self._answer(404)
            return
        keys = sorted(f.relative_to(top).as_posix() for f in top.rglob("*") if f.is_file())
        entries: dict[str, str] = {}  # in order: the whole key, or a prefix that several have
        for key in (key for key in keys if key.startswith(prefix)):
            inner, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            if cut:
                entries[prefix + inner + cut] = "CommonPrefixes"
            else:
                entries[key] = "Contents"
        after = settings.get("continuation-token", "")
        most = min(_PAGE, int(settings.get("max-keys", _PAGE)))
        left = [name for name in entries if name > after]
        page, more = left[:most], len(left) > most
        listed = "".join(self._entry(top, name, entries[name]) for name in page)
        next_page = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        body = (
            f'<?xml version="1.0"?><ListBucketResult xmlns="{_NAMESPACE}"><Name>{bucket}</Name>'
            f"<Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount><MaxKeys>{most}</MaxKeys>"
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{next_page}{listed}</ListBucketResult>"
        )
        self._answer(200, body.encode(), {"content-type": "application/xml"})

    @staticmethod
    def _entry(top: Path, name: str, kind: str) -> str:
        if kind == "CommonPrefixes":
            return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        size = (top / name).stat().st_size
        about = f"<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag><Size>{size}</Size>"
        return f"<Contents><Key>{escape(name)}</Key>{about}</Contents>"

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        about = {"last-modified": email.utils.formatdate(usegmt=True), "etag": '"e"', **(headers or {})}
        for name, value in {**about, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
