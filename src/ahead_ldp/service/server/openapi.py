"""The OpenAPI document: what the framework derives, the upload route described by hand, and problems everywhere."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from ahead_ldp.device.refusals import Reason
from ahead_ldp.service.campaigns.problems import KINDS, problem_type
from ahead_ldp.service.server.models import ProblemView, UploadAnswer
from ahead_ldp.service.server.routing import problem_responses

UPLOAD_PATH = "/v1/campaigns/{campaign}/reports"
_COMPONENTS = "#/components/schemas/"


def complete(app: FastAPI) -> None:
    """Let the application serve the whole document."""
    derive = app.openapi

    def openapi() -> dict[str, Any]:
        """The document, made once."""
        if app.openapi_schema is None:
            app.openapi_schema = _completed(derive())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for model in (ProblemView, UploadAnswer):
        schema = model.model_json_schema(ref_template=_COMPONENTS + "{model}")
        schemas |= schema.pop("$defs", {})
        schemas[schema["title"]] = schema
    schemas["ProblemView"]["properties"]["type"]["enum"] = [problem_type(kind) for kind in KINDS]
    schemas["Refusal"]["properties"]["reason"]["enum"] = [reason.value for reason in Reason]
    for operation in [o for operations in document["paths"].values() for o in operations.values()]:
        default = operation["responses"].get("422", {}).get("content", {}).get("application/json", {})
        if default.get("schema", {}).get("$ref", "").endswith("HTTPValidationError"):
            del operation["responses"]["422"]  # a request that breaks a rule is a problem, 400
        if "401" in operation["responses"]:
            operation["security"] = [{"role": []}]
            operation["parameters"] = [p for p in operation.get("parameters", []) if p["name"] != "authorization"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    document["components"]["securitySchemes"] = {"role": {"type": "http", "scheme": "bearer"}}
    document["paths"][UPLOAD_PATH] = {"post": _upload()}
    return document


def _upload() -> dict[str, Any]:
    kinds = ("truncated", "unknown_version", "wrong_campaign", "wrong_question", "not_found", "too_large")
    more = ("unsupported_media_type", "too_many_requests", "busy", "key_missing", "unavailable")
    responses = {str(status): answer for status, answer in problem_responses(*kinds, *more).items()}
    schema = {"schema": {"$ref": _COMPONENTS + "Upload"}}
    responses["200"] = {"description": "What became of every frame", "content": {"application/json": schema}}
    return {
        "tags": ["public"],
        "summary": "Upload reports",
        "description": "Header (65 bytes: version, campaign digest, question digest), then frames of one length, "
        "at least one. A frame is accepted only after it is durable. A known id is accepted again, whatever comes with "
        "it. docs/wire.md has the form and the order of checks.",
        "operationId": "upload_reports",
        "parameters": [
            {
                "name": "campaign",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            }
        ],
        "requestBody": {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": responses,
    }
