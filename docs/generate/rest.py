"""The page of the REST API's operations: what each does, who may call it, and which scope a token of theirs needs."""

import re
from collections.abc import Iterator, Mapping

from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from rest_framework.permissions import SAFE_METHODS

from docs.generate.markdown import rows_of, table
from portal.api.http.auth import MethodScope
from portal.settings import BASE_DIR

PREFIX = "/api/v1"
METHODS = ("get", "post", "put", "patch", "delete")
HEAD = """# REST operations

For those who write clients: every operation, and who may call it. Written by `make reference` from the OpenAPI schema
and from what each role was answered in the tests ([who may do what](../evidence/access.md)). The rules that hold for
all operations are in [the REST API](api.md).

Each operation leads to its parameters, body, answers and problem types in the served OpenAPI, at `/api/docs` of the
portal, and as a document at `/api/v1/schema`. Paths begin with `/api/v1`.

“The team” is the viewers, members and leads of the team that owns the thing in question. A list shows each caller the
part of it that they may see. Operators need scope `admin` instead of `approve` for limits of departments and teams
and for the settings of a project, and instead of `request` to revoke tokens of others.

"""
TEAM = {"viewer", "member", "lead"}
WORDS = {"viewer": "viewers", "member": "members", "lead": "leads", "auditor": "auditors", "operator": "operators"}
MAY = {"allowed", "409", "503"}
"""Answers of the matrix to those who may: 409 and 503 say what was missing where it was tried."""


def operations() -> str:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    answers = rows_of((BASE_DIR / "docs" / "evidence" / "access.md").read_text(encoding="utf-8"), "address")
    may = {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", row["address"].strip("`")): who_may(row) for row in answers}
    scopes = dict(_scopes())
    rows = []
    for path, methods in sorted(schema["paths"].items()):
        for method in METHODS:
            if method not in methods or (method == "patch" and "put" in methods):
                continue
            operation, name = methods[method], f"{method.upper()} {path}"
            address = f"portal:api/docs#/{operation['tags'][0]}/{operation['operationId']}"
            shown = f"{'PUT, PATCH' if method == 'put' else method.upper()} {path.removeprefix(PREFIX)}"
            rows.append((f"[{shown}]({address})", operation["summary"], may[name], scopes[name]))
    return (HEAD + table(("operation", "what it does", "who may", "scope"), rows)).rstrip("\n") + "\n"


def who_may(row: Mapping[str, str]) -> str:
    """Return in words which roles the access matrix lets through."""
    roles = {role for role, answer in row.items() if answer in MAY}
    if "anonymous" in roles:
        return "everyone, without a token"
    if "no team" in roles:
        return "everyone signed in"
    named = [WORDS[role] for role in WORDS if role in roles and not (role in TEAM and roles >= TEAM)]
    team = ["the team"] if roles >= TEAM else []
    department = ["other leads of its department"] if roles >= {*TEAM, "other lead"} else []
    return ", ".join([*team, *department, *named])


def _scopes() -> Iterator[tuple[str, str]]:
    """Yield each operation as method and path, with the scope that it requires of a token."""
    for path, _, method, view in EndpointEnumerator().get_api_endpoints():
        for permission in view.cls.permission_classes:
            if issubclass(permission, MethodScope):
                is_safe = method in SAFE_METHODS
                yield f"{method} {path}", f"`{permission.read_scope if is_safe else permission.write_scope}`"
