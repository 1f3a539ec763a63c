"""What runs on a person's device: standard library only, no seed, no floating-point coin.

A question is checked in full before the private value is read; the value becomes a code by comparison with
declared edges, the code a cell of the question's partition, the cell one noisy report.
"""

from ahead_ldp.device.canonical import canonical_bytes, digest, parse_canonical
from ahead_ldp.device.codes import Attribute, Schema
from ahead_ldp.device.frames import Header, Report, decode_batch, encode_batch
from ahead_ldp.device.laws import LAWS, Law, law_from_record
from ahead_ldp.device.partition import Axis, GridForm, TreeForm
from ahead_ldp.device.question import Policy, Question, check_question
from ahead_ldp.device.refusals import QuestionRefused, Reason, ReportRejected, ValueRefused
from ahead_ldp.device.words import SystemWords, Words

__all__ = [
    "LAWS",
    "Attribute",
    "Axis",
    "GridForm",
    "Header",
    "Law",
    "Policy",
    "Question",
    "QuestionRefused",
    "Reason",
    "Report",
    "ReportRejected",
    "Schema",
    "SystemWords",
    "TreeForm",
    "ValueRefused",
    "Words",
    "canonical_bytes",
    "check_question",
    "decode_batch",
    "digest",
    "encode_batch",
    "law_from_record",
    "parse_canonical",
]
