import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahead_ldp.device import LAWS, Header, Law, Reason, Report, ReportRejected, SystemWords, decode_batch, encode_batch
from ahead_ldp.device.frames import HEADER_LENGTH, ID_LENGTH, split_batch
from ahead_ldp.device.tokens import new_nonce, report_id

HEADER = Header("0a" * 32, "5f" * 32)
LAW_EXAMPLES = [law.make(1, 11) for law in LAWS.values()]

DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
HEADERS = st.builds(Header, DIGESTS, DIGESTS)
IDS = st.binary(min_size=ID_LENGTH, max_size=ID_LENGTH)


def example_batch(law: Law, n: int) -> tuple[list[Report], bytes]:
    reports = [Report(report_id(new_nonce()), law.draw(i % law.cells, SystemWords())) for i in range(n)]
    return reports, encode_batch(HEADER, reports)


def rejected(data: bytes, law: Law, header: Header = HEADER) -> Reason:
    with pytest.raises(ReportRejected) as caught:
        decode_batch(data, header, law)
    return caught.value.reason


@pytest.mark.parametrize("law", LAW_EXAMPLES, ids=lambda law: law.name)
@given(header=HEADERS, ids=st.lists(IDS, min_size=1, max_size=5))
def test_round_trip(law, header, ids):
    reports = [Report(i, law.draw(3, SystemWords())) for i in ids]
    data = encode_batch(header, reports)
    assert len(data) == HEADER_LENGTH + len(ids) * (ID_LENGTH + law.payload_length)
    assert Header.decode(data) == header
    assert decode_batch(data, header, law) == reports
    assert split_batch(data, header, law) == (ids, b"".join(r.payload for r in reports))


@pytest.mark.parametrize("law", LAW_EXAMPLES, ids=lambda law: law.name)
def test_every_changed_byte_of_the_header_is_refused(law):
    _, data = example_batch(law, 2)
    for i in range(HEADER_LENGTH):
        expected = Reason.VERSION if i == 0 else Reason.CAMPAIGN if i < 33 else Reason.QUESTION
        for change in (1, 0x80, 0xFF):
            assert rejected(data[:i] + bytes([data[i] ^ change]) + data[i + 1 :], law) is expected


@pytest.mark.parametrize("law", LAW_EXAMPLES, ids=lambda law: law.name)
def test_a_byte_missing_or_added_is_refused(law):
    _, data = example_batch(law, 2)
    for i in range(len(data)):
        assert isinstance(rejected(data[:i] + data[i + 1 :], law), Reason)
    assert rejected(data + b"\0", law) is Reason.TRUNCATED


@pytest.mark.parametrize("law", LAW_EXAMPLES, ids=lambda law: law.name)
def test_every_cut_but_between_frames_is_refused(law):
    _, data = example_batch(law, 3)
    between = {HEADER_LENGTH + k * (ID_LENGTH + law.payload_length) for k in (1, 2)}
    for length in set(range(len(data))) - between:
        assert rejected(data[:length], law) is Reason.TRUNCATED
    for length in between:
        assert len(decode_batch(data[:length], HEADER, law)) < 3


@pytest.mark.parametrize("law", LAW_EXAMPLES, ids=lambda law: law.name)
def test_a_changed_byte_of_a_frame_is_refused_or_read_as_it_stands(law):
    reports, data = example_batch(law, 2)
    frame = ID_LENGTH + law.payload_length
    for i in range(HEADER_LENGTH, len(data)):
        for value in range(0, 256, 5):
            changed = data[:i] + bytes([value]) + data[i + 1 :]
            which = (i - HEADER_LENGTH) // frame
            body = changed[HEADER_LENGTH + which * frame :][:frame]
            expected = list(reports)
            expected[which] = Report(body[:ID_LENGTH], body[ID_LENGTH:])
            assert decoded(changed, law) in (expected, Reason.RANGE, Reason.PADDING, Reason.WEIGHT)


def decoded(data: bytes, law: Law) -> list[Report] | Reason:
    try:
        return decode_batch(data, HEADER, law)
    except ReportRejected as error:
        return error.reason


def test_one_bad_payload_rejects_the_batch():
    law = LAWS["grr"].make(1, 11)
    reports = [Report(report_id(new_nonce()), bytes([code])) for code in (3, 11, 4)]
    assert rejected(encode_batch(HEADER, reports), law) is Reason.RANGE


def test_no_frame_at_all_is_refused():
    law = LAWS["grr"].make(1, 11)
    assert rejected(encode_batch(HEADER, []), law) is Reason.TRUNCATED
    assert rejected(b"", law) is Reason.TRUNCATED


def test_another_question_is_refused():
    law = LAWS["grr"].make(1, 11)
    _, data = example_batch(law, 1)
    assert rejected(data, law, Header("0b" * 32, HEADER.question)) is Reason.CAMPAIGN
    assert rejected(data, law, Header(HEADER.campaign, "5e" * 32)) is Reason.QUESTION


@pytest.mark.parametrize("bad", ["", "0A" * 32, "0a" * 31, None])
def test_a_header_without_digests_has_no_bytes(bad):
    with pytest.raises(ValueError, match="campaign"):
        Header(bad, HEADER.question).encode()
    with pytest.raises(ValueError, match="question"):
        Header(HEADER.campaign, bad).encode()


def test_report_ids_do_not_repeat():
    """1,000 ids of 128 bits: a repeat by chance has probability 2**-109."""
    ids = {report_id(new_nonce()) for _ in range(1000)}
    assert len(ids) == 1000
    assert {len(i) for i in ids} == {ID_LENGTH}
