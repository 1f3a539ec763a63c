"""The device's side of the service, on the standard library and ``ahead_ldp.device`` alone."""

from ahead_ldp.service.client.enrolment import IssuerClient, Signer
from ahead_ldp.service.client.offers import Offer, Outcome, Receipt, Status, privacy_sentence
from ahead_ldp.service.client.policy import Fields, OwnerPolicy
from ahead_ldp.service.client.respondent import Client, WithdrawalRefused
from ahead_ldp.service.client.transport import Answer, HttpTransport, Transport, Unreachable

__all__ = [
    "Answer",
    "Client",
    "Fields",
    "HttpTransport",
    "IssuerClient",
    "Offer",
    "Outcome",
    "OwnerPolicy",
    "Receipt",
    "Signer",
    "Status",
    "Transport",
    "Unreachable",
    "WithdrawalRefused",
    "privacy_sentence",
]
