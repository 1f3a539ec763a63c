"""Pages for people: the participant's page, and the dashboard of operators and analysts."""

from ahead_ldp.service.dashboard.pages import make_pages

__all__ = ["make_pages"]
