"""Headers that keep a browser from doing what no page of ours asks for."""

from __future__ import annotations


def page_policy(*connect: str) -> str:
    """A content security policy: nothing comes from elsewhere or runs inline, and nobody frames it.

    Scripts of the page speak with this server and with the origins of ``connect``.
    """
    asked = " ".join(["'self'", *connect])
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src {asked}; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


# For a page that brings its own styles and pictures, and on which nothing runs or is loaded.
INERT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": page_policy(),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(), camera=(), microphone=()",
}
