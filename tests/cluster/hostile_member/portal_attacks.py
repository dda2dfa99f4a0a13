"""Requests of the hostile member to the portal: endless ones of each kind, from a random generator. Pure."""

import json
from collections.abc import Iterator
from random import Random
from urllib.parse import urlencode

from tests.cluster.hostile_member.calls import SIGN_IN, UNKNOWN_ID, AttackContext, Call, Credentials, Object

OFFERINGS = (("t4/shared", 6), ("l40s/whole", 2), ("a100/mig-1g.10gb", 4), ("h100/whole", 2))
"""Offerings with the maximum count. None is a part of a GPU by DRA: a member who may choose GPUs could keep whole
GPUs from others, which is a matter of packing and not of the control plane.
"""
FORM = "application/x-www-form-urlencoded"
ALLOCATIONS = "/api/v1/allocations"
RELEASE = f"{ALLOCATIONS}/{{id}}/release"


def wrong_passwords(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Sign-in with many names, most of which do not exist."""
    while True:
        name = rng.choice(
            [*context.others, "operator", f"guest-{rng.randrange(10**6)}", f"guest-{rng.randrange(10**6)}"]
        )
        body = urlencode({"username": name, "password": f"wrong-{rng.randrange(10**9)}"}).encode()
        yield Call(Credentials.NONE, "POST", SIGN_IN, body, content_type=FORM, must_fail=True)


def wrong_tokens(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Invalid bearer tokens, well-formed and malformed, for REST and for metrics."""
    while True:
        token = rng.choice([f"gpup_{rng.getrandbits(48):012x}_{'x' * 43}", f"{rng.getrandbits(64):x}", "x" * 4000])
        path = rng.choice(["/api/v1/me", ALLOCATIONS, "/metrics"])
        headers = {"Authorization": f"Bearer {token}"}
        yield Call(Credentials.NONE, "GET", path, headers=headers, must_fail=True)


def scheduled_requests(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Requests that start tomorrow and cost nothing until then."""
    while True:
        if rng.random() < 0.15:
            yield Call(Credentials.TOKEN, "POST", RELEASE, {})
        else:
            later = {"starts_at": context.tomorrow, "hours": 1}
            yield Call(Credentials.TOKEN, "POST", ALLOCATIONS, {**_request_body(rng, context), **later})


def requests_and_releases(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Requests on both backends that start now, released at once or left in the queue."""
    while True:
        if rng.random() < 0.45:
            yield Call(Credentials.TOKEN, "POST", RELEASE, {"reason": "r" * rng.choice([0, 500])})
        else:
            yield Call(Credentials.TOKEN, "POST", ALLOCATIONS, _request_body(rng, context))


def previews(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Previews of requests, which read the whole fleet and write nothing."""
    while True:
        yield Call(Credentials.TOKEN, "POST", f"{ALLOCATIONS}/preview", _request_body(rng, context))


def reads(rng: Random, context: AttackContext) -> Iterator[Call]:
    """The longest lists, and the OpenAPI schema."""
    lists = ("/api/v1/offerings", f"{ALLOCATIONS}?limit=100", f"/api/v1/queues/{context.team}", "/api/v1/costs")
    while True:
        yield Call(Credentials.TOKEN, "GET", rng.choice([*lists, "/api/v1/jobs", "/api/v1/schema"]))


def invalid_bodies(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Bodies that are not JSON, or are invalid."""
    while True:
        wrong: list[Object] = [
            {"count": 10**30},
            {"count": -1},
            {"hours": "NaN"},
            {"name": "n" * 900_000},
            {"purpose": "\u0000"},
            {"project": context.other_team},
            {"offering": "none/such"},
            {"starts_at": "yesterday"},
            {"unknown": True},
            {"claim": {"devices": {"requests": [{}] * 5000}}},
        ]
        raw: list[Object | bytes] = [
            b"{",
            b"[" * 100_000,
            b"\xff\xfe",
            b'"text"',
            b"",
            b'{"project": "\\ud800"}',
            b" " * 1_100_000,
        ]
        content = rng.choice([*raw, *wrong])
        body = (
            content if isinstance(content, bytes) else json.dumps({**_request_body(rng, context), **content}).encode()
        )
        yield Call(Credentials.TOKEN, "POST", ALLOCATIONS, body, must_fail=True)


def lookups(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Look-ups: members of other teams, invitations and roles without permission, allocations by id."""
    while True:
        name = rng.choice([*context.others, "operator", f"guest-{rng.randrange(10**6)}"])
        invitation = {"team": rng.choice([context.team, context.other_team]), "invitee": name, "role": "lead"}
        member = {"team": context.team, "username": name, "role": "lead"}
        yield rng.choice(
            [
                Call(Credentials.TOKEN, "GET", f"/api/v1/members/{context.other_team}/{name}", must_fail=True),
                Call(Credentials.TOKEN, "POST", "/api/v1/invitations", invitation, must_fail=True),
                Call(Credentials.TOKEN, "POST", "/api/v1/members", member, must_fail=True),
                Call(Credentials.TOKEN, "GET", f"{ALLOCATIONS}/{UNKNOWN_ID}", must_fail=True),
                Call(Credentials.TOKEN, "GET", f"/api/v1/teams/{context.other_team}", must_fail=True),
            ]
        )


def pages(rng: Random, context: AttackContext) -> Iterator[Call]:
    """Pages in a browser's session."""
    paths = ("/", "/request", "/allocations", f"/queues/{context.team}", "/costs", f"/teams/{context.team}")
    while True:
        yield Call(Credentials.SESSION, "GET", rng.choice(paths))


def _request_body(rng: Random, context: AttackContext) -> Object:
    offering, most = rng.choice(OFFERINGS)
    return {"project": context.project, "offering": offering, "count": rng.randint(1, most)}
