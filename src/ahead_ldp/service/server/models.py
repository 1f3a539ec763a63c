"""What the control plane takes and gives, as the OpenAPI document shows it. Unknown fields are refused."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Digest = Field(pattern=r"^[0-9a-f]{64}$")


class Strict(BaseModel):
    """A body that is taken as it is declared, or not at all."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class MethodChoice(Strict):
    """A method by name, with choices that differ from its default."""

    name: str = Field(max_length=100)
    choices: dict[str, Any] = Field(default_factory=dict)


class CampaignDraft(Strict):
    """A new campaign. The server completes the method, derives the groups, and answers with the digest."""

    title: str
    purpose: str
    controller: str
    contact: str
    texts: dict[str, str] = Field(default_factory=dict)
    created: str = Field(description="a day, YYYY-MM-DD; left out, today", default="")
    attributes: list[str] = Field(description='such as "pay=real,0,500000,512"', min_length=1, max_length=256)
    epsilon: str = Field(max_length=40)
    method: MethodChoice | None = Field(default=None, description="left out, the best for the attributes")
    paper: bool = False
    users: int | None = Field(
        default=None, ge=1, le=10**12, description="people expected: groups and waves follow, or a refusal if too few"
    )
    minimum: int = Field(ge=1, le=10**9)
    closing: dict[str, Any] | None = Field(
        default=None,
        description='such as {"kind": "deadline", "seconds": 86400}; left out, the reports that 80 % of users bring',
    )
    enrolment: Literal["panel", "walk_in"] = "walk_in"
    token: dict[str, Any] = Field(default_factory=lambda: {"tier": "none"})
    review: bool = False
    retention_days: int = Field(default=30, ge=0, le=36_500)
    wording: list[dict[str, Any]] = Field(
        default_factory=list,
        max_length=256,
        description='such as {"attribute": "pay", "question": "What do you earn?"}',
    )


class Extension(Strict):
    """A new deadline of an open wave, in seconds from now."""

    seconds: int = Field(ge=1, le=10**9)


class GroupChoice(Strict):
    """One group of a wave."""

    group: str = Field(min_length=1, max_length=10_000)


class NewRoleToken(Strict):
    """A token to be made."""

    role: Literal["operator", "analyst", "monitor"]
    name: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")
    expires_in_s: int | None = Field(default=None, ge=1, le=10**10)


class Nonce(Strict):
    """The receipt of a report."""

    nonce: str = Field(pattern=r"^[0-9a-f]{64}$")


Intervals = Literal["strict", "model"]
INTERVALS = (
    "strict: from the reports alone, true whatever the data are like; model: narrower, and true if the assumption is "
    "that the notes name"
)


class Queries(Strict):
    """What is asked of the closed waves; any of the parts may be left out."""

    queries: list[str] = Field(
        default_factory=list, max_length=1000, description='"pay in 100000..120000 and age in 30..39"'
    )
    snap: Literal["outward", "inward", "nearest"] | None = None
    cdf: list[str] = Field(default_factory=list, max_length=16, description="attributes; at most 64 points of each")
    histograms: list[HistogramChoice] = Field(default_factory=list, max_length=16)
    quantiles: list[QuantilesChoice] = Field(default_factory=list, max_length=16)
    means: list[str] = Field(default_factory=list, max_length=16, description="attributes")
    level: float = Field(default=0.95, gt=0, lt=1)
    intervals: Intervals = Field(default="strict", description=INTERVALS)


class HistogramChoice(Strict):
    """The histogram of one attribute."""

    attribute: str = Field(max_length=1000)
    bins: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="left out, a bin for each category, or at most 64 of equally many buckets",
    )


class QuantilesChoice(Strict):
    """Quantiles of one attribute."""

    attribute: str = Field(max_length=1000)
    levels: list[float] = Field(default=[0.25, 0.5, 0.75], min_length=1, max_length=100)


Queries.model_rebuild()


class CampaignMade(BaseModel):
    """A stored campaign."""

    campaign: str = Digest
    state: str


class CampaignPlanned(CampaignMade):
    """A stored campaign, and how the people expected are spread over its waves and groups."""

    name: str
    plan: dict[str, Any] | None = None


class WaveView(BaseModel):
    """A wave as everybody sees it."""

    number: int
    state: str
    opened_at: int
    closes_at: int | None


class StateView(BaseModel):
    """Where a campaign stands."""

    state: str
    wave: int
    waves: list[WaveView]
    frozen: str = Digest
    epoch: int


class JobView(BaseModel):
    """Work in the background; ``result`` is there when it is done, ``problem`` when it failed."""

    job: int
    state: str
    kind: str
    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None


class TokenMade(BaseModel):
    """A new token. Its text is shown here and nowhere else."""

    name: str
    role: str
    token: str


class TokenView(BaseModel):
    """A token without its text."""

    name: str
    role: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None


class GroupProgress(BaseModel):
    """How far one group is."""

    group: str
    reports: int
    minimum: int
    state: str


class Progress(BaseModel):
    """How far the waves are, live: numbers of reports, never what they say."""

    state: str
    wave: int
    groups: list[GroupProgress]
    reports: int
    refused: dict[str, int]
    closes_at: int | None
    counting: bool = Field(description="whether the wave takes no more reports, and they are being counted")
    held: bool = Field(description="whether the wave was counted, and waits for an operator")
    notice: str = Field(default="", description="what an operator has to know and do; left out if there is nothing")


class UploadAnswer(BaseModel):
    """What became of a batch."""

    model_config = ConfigDict(title="Upload")

    class Refusal(BaseModel):
        """One frame that was not accepted."""

        index: int
        reason: str

    accepted: int
    refused: list[Refusal]


class ProblemView(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str | None = None
