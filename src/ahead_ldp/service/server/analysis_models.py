"""What the routes of analyses take. Unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ahead_ldp.service.server.models import INTERVALS, Intervals, Strict

Name = Annotated[str, Field(max_length=1000)]
Asked = Annotated[str, Field(max_length=10_000, description='such as "pay in 100000..120000"')]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Leveled(Strict):
    """How sure intervals are, and of which kind."""

    level: float = Field(default=0.95, gt=0, lt=1)
    intervals: Intervals = Field(default="strict", description=INTERVALS)


class Pair(Strict):
    """Two attributes. Intervals are strict."""

    first: Name
    second: Name
    level: float = Field(default=0.95, gt=0, lt=1)


class ChangeAsked(Leveled):
    """What is compared with an earlier campaign. The two need not have the same buckets."""

    since: str = Field(pattern=r"^[0-9a-f]{64}$", description="digest of the earlier campaign")
    queries: list[Asked] = Field(default_factory=list, max_length=100)
    attributes: list[Name] = Field(default_factory=list, max_length=64, description="left out, all that both have")
    about: Literal["everybody", "people"] = Field(
        default="everybody",
        description="everybody: the people of each campaign count as drawn at random from everybody; people: only "
        "those who took part",
    )


class GroupsAsked(Leveled):
    """What is asked in every group of people."""

    by: Name = Field(description="attribute whose categories are the groups")
    bins: int | None = Field(default=None, ge=1, le=200, description="of it, where it is numeric")
    shares: list[Asked] = Field(default_factory=list, max_length=16, description="queries")
    means: list[Name] = Field(default_factory=list, max_length=4, description="attributes")
    medians: list[Name] = Field(default_factory=list, max_length=4, description="attributes")
    compare: list[Name] = Field(
        default_factory=list, max_length=2, description="two groups: also each number of the second less the first's"
    )


class Weighing(Strict):
    """Queries, and what is known of everybody. Intervals are strict for one margin, else the model's."""

    margins: dict[Name, dict[Name, float]] = Field(
        min_length=1, max_length=8, description='share or count of every category: {"sex": {"f": 0.51, "m": 0.49}}'
    )
    queries: list[Asked] = Field(min_length=1, max_length=16)
    level: float = Field(default=0.95, gt=0, lt=1)


class SeriesAsked(Strict):
    """Campaigns that are rounds of one series, in order of time."""

    campaigns: list[Digest] = Field(min_length=2, max_length=64)
    query: Asked | None = Field(
        default=None,
        description="the share to follow; left out, only the budget, which is known before anything is collected",
    )
    smooth: bool = Field(default=False, description="take the share as a random walk; intervals are then the model's")
    level: float = Field(default=0.95, gt=0, lt=1)


class ReportAsked(Leveled):
    """What the page holds beside every attribute."""

    format: Literal["html", "pdf"] = Field(default="html", description="a page for a browser, or A4 pages to print")
    title: str = Field(default="", max_length=200, description="left out, the campaign's")
    queries: list[Asked] = Field(default_factory=list, max_length=64)
    since: Digest | None = Field(default=None, description="an earlier campaign, for what changed")
    by: Name | None = Field(default=None, description="groups: means for each category of this attribute")
