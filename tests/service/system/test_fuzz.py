"""Fuzzing: whatever is sent, the server answers as its OpenAPI document says, and never with a failure of its own."""

import io
import json
import logging
import re

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ahead_ldp.device.frames import HEADER_LENGTH, Header
from ahead_ldp.device.refusals import Reason
from ahead_ldp.service.campaigns import logs
from ahead_ldp.service.server.app import make_control
from ahead_ldp.service.server.auth import bearer, token_hash
from ahead_ldp.service.server.config import PREFIX, Settings
from ahead_ldp.service.server.service import Service
from tests.service.server.asgi import ADDRESS
from tests.service.server.harness import ages, batch, bench, problem, reports

CANARY = "canary-8d1f0b"
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A server with a campaign in its second wave, everything that it logged, and where its files are."""
    folder, stream = tmp_path_factory.mktemp("fuzzed"), io.StringIO()
    saved = {name: logging.getLogger(name).handlers for name in logs.LOGGERS}
    logs.configure("debug", stream)
    try:
        with bench(folder) as service:
            yield service, second_wave(service), stream, folder
    finally:
        for name, handlers in saved.items():
            logging.getLogger(name).handlers = handlers
            logging.getLogger(name).propagate = True


def second_wave(service, **changes):
    """A campaign with results and an open wave."""
    campaign = service.opened(minimum=5, **changes)
    service.answer(campaign, 1, ages(60))
    service.close(campaign, 1)
    service.answer(campaign, 2, ages(20))
    return campaign


def well(answer):
    """No failure, no traceback, and problems are problem documents."""
    assert answer.status_code < 500, answer.text
    assert b"Traceback" not in answer.content
    if answer.status_code >= 400:
        problem(answer)
    return answer


# Every operation of the OpenAPI document, with the operator's token.


def test_the_document_is_one_that_tools_read(running):
    service, *_ = running
    schema = schemathesis.openapi.from_dict(service.client.get("/v1/openapi.json").json())
    assert sum(1 for _ in schema.get_all_operations()) > 25


def operations():
    """Method and path of every operation, from the application itself."""
    control = make_control(Service(store=None, settings=Settings()))
    return [(m.upper(), path) for path, found in control.openapi()["paths"].items() for m in found]


@pytest.mark.parametrize(("method", "path"), operations())
def test_every_operation_answers_as_described(running, method, path):
    service, *_ = running
    campaign = second_wave(service, title=f"{method} {path}")  # of its own: some operations end it
    schema = schemathesis.openapi.from_dict(service.client.get("/v1/openapi.json").json())
    strategy = schema[path][method].as_strategy()

    @settings(max_examples=15 if settings.default.max_examples <= 100 else 300, suppress_health_check=SLOW)
    @given(strategy, st.booleans())
    def one(case, known):
        if known and "campaign" in case.path_parameters:
            case.path_parameters["campaign"] = campaign
        if "wait" in (case.query or {}):
            case.query["wait"] = 0  # no closer runs here: there is nothing to wait for
        sent = case.as_transport_kwargs(base_url="http://fuzz")
        answer = well(send(service, sent))
        listed = case.operation.definition.raw["responses"]
        assert str(answer.status_code) in listed or answer.status_code in (400, 404, 405, 413), answer.text

    one()


def send(service, sent):
    """The request of schemathesis through the application object."""
    import httpx

    sent.pop("timeout", None)
    built = httpx.Request(
        sent["method"], sent["url"], params=sent.get("params"), json=sent.get("json"),
        content=sent.get("data"), headers=sent.get("headers"),
    )  # fmt: skip
    headers = {k: v for k, v in built.headers.items() if k != "host"} | {"authorization": f"Bearer {service.operator}"}
    return service.client.request(built.method, built.url.raw_path.decode(), content=built.content, headers=headers)


# Frames, headers, tokens and settings.


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_uploads_of_any_bytes(running, data):
    """Bytes that are close to a batch, and bytes that are not."""
    service, campaign, *_ = running
    wave = data.draw(st.sampled_from((1, 2)))
    question = next(iter(service.questions(campaign, wave).values()))
    body = batch(question, reports(question, 3))
    kind = data.draw(st.sampled_from(("random", "cut", "flipped", "more", "frames")))
    if kind == "random":
        body = data.draw(st.binary(max_size=300))
    elif kind == "cut":
        body = body[: data.draw(st.integers(0, len(body)))]
    elif kind == "flipped":
        at = data.draw(st.integers(0, len(body) - 1))
        body = body[:at] + bytes([body[at] ^ data.draw(st.integers(1, 255))]) + body[at + 1 :]
    elif kind == "more":
        body += data.draw(st.binary(min_size=1, max_size=200))
    else:
        size = len(body) - HEADER_LENGTH
        body = body[:HEADER_LENGTH] + data.draw(st.binary(min_size=size // 3, max_size=size))
    answer = well(service.upload(campaign, body))
    if answer.status_code == 200:
        found = answer.json()
        listed = found["refused"]
        assert [r["index"] for r in listed] == sorted({r["index"] for r in listed})
        assert all(r["reason"] in tuple(Reason) for r in listed)
        assert found["accepted"] + len(listed) > 0


HEADERS = st.dictionaries(
    st.sampled_from(("content-type", "content-length", "transfer-encoding", "authorization", "accept", "expect",
                     "x-forwarded-for", "if-none-match", "range", "cookie", "origin")),
    st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60),
    max_size=4,
)  # fmt: skip


@given(HEADERS, st.sampled_from(("GET", "POST", "PUT", "HEAD", "OPTIONS", "PATCH", "DELETE", "TRACE", "x")), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_requests_with_any_headers(running, headers, method, data):
    service, campaign, *_ = running
    paths = [
        f"/v1/campaigns/{campaign}/reports",
        f"/v1/campaigns/{campaign}/withdrawals",
        "/v1/campaigns",
        "/v1/health",
    ]
    headers = {name: value.encode("latin-1").decode("latin-1") for name, value in headers.items()}
    found = service.client.request(
        method, data.draw(st.sampled_from(paths)), content=data.draw(st.binary(max_size=100)), headers=headers
    )
    assert found.status_code < 500
    assert b"Traceback" not in found.content


@given(
    st.one_of(
        st.none(), st.text(), st.text().map("Bearer ahead_".__add__), st.binary().map(lambda b: b.decode("latin-1"))
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_made_up_token_opens_anything(running, text):
    service, *_ = running
    assert bearer(text) is None or service.store.role_token(token_hash(bearer(text))) is None


NAMES = st.sampled_from([f.upper() for f in Settings.__dataclass_fields__])
VALUES = st.one_of(
    st.text(max_size=20), st.integers().map(str), st.floats().map(str), st.sampled_from(("true", "", "0"))
)


def refusal(load):
    """What a caller is told, or None if nothing is wrong."""
    try:
        load()
    except ValueError as error:
        return str(error)
    return None


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_variables_make_settings_or_one_sentence(values):
    environment = {PREFIX + name: value for name, value in values.items()}
    flags = {name.lower(): value for name, value in values.items()}
    told = refusal(lambda: Settings.load(environment=environment))
    assert told is None or told.startswith("expected")
    assert (told is None) == (refusal(lambda: Settings.load(flags=flags, environment={})) is None)


@given(st.one_of(
    st.text(max_size=200),
    st.lists(st.tuples(NAMES, VALUES), max_size=4).map(lambda rows: "\n".join(f"{n.lower()} = {v}" for n, v in rows)),
))  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_make_settings_or_one_sentence(tmp_path, text):
    path = tmp_path / "ahead.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    told = refusal(lambda: Settings.load(path, {}))
    assert told is None or told.startswith("expected")


# What was sent stays out of everything that is kept or shown.


def test_canaries_stay_out_of_logs_errors_and_files(running):
    """A canary goes in as value, token, nonce, header, path and query; and everything above was logged too."""
    service, campaign, stream, folder = running
    question = next(iter(service.questions(campaign, 2).values()))
    mark = CANARY.encode()
    frame = mark.ljust(16, b".") + bytes(question.law.payload_length)
    bodies = [mark * 30, Header(campaign, question.digest).encode() + mark, Header("1" * 64, "2" * 64).encode() + mark]
    bad = Header(campaign, question.digest).encode() + frame[:-1] + b"\xff"
    answers = [
        service.upload(campaign, body, headers={"x-canary": CANARY, "cookie": CANARY}) for body in [*bodies, bad]
    ]
    tries = [
        ("GET", f"/campaigns/{CANARY}", None), ("GET", f"/campaigns?{CANARY}={CANARY}", None),
        ("POST", "/campaigns", {CANARY: CANARY}), ("POST", "/campaigns/records", {"type": CANARY, "title": CANARY}),
        ("POST", f"/campaigns/{campaign}/withdrawals", {"nonce": CANARY}),
        ("POST", f"/campaigns/{campaign}/queries", {"cdf": [1], CANARY: 1}),
        ("POST", f"/campaigns/{campaign}/waves/2/extend", {"seconds": CANARY}),
        ("DELETE", f"/tokens/{CANARY}", None), ("POST", "/tokens", {"role": CANARY, "name": CANARY}),
    ]  # fmt: skip
    answers += [service.call(method, path, json=body) for method, path, body in tries]
    answers.append(service.client.get("/v1/campaigns", headers={"authorization": f"Bearer ahead_{CANARY}"}))
    for answer in answers:
        well(answer)
        assert CANARY not in answer.text
        assert CANARY not in json.dumps(answer.headers)
    service.app.round()
    text = stream.getvalue()
    for secret in (CANARY, service.operator, service.analyst, ADDRESS):
        assert secret not in text
        for path in folder.iterdir():
            assert secret.encode() not in path.read_bytes(), path.name
    known = re.compile(r"[a-z_.]+")
    assert all(known.fullmatch(json.loads(line)["event"]) for line in text.splitlines())
    assert "request_failed" not in text
