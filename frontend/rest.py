"""The same request over REST, to copy: the page teaches the interface that pipelines use."""

import json
import shlex

from django.conf import settings

from allocations.requests.services import Wish


def as_curl(wish: Wish) -> str:
    body: dict[str, object] = {"project": wish.project, "offering": wish.offering, "count": wish.count}
    if wish.hours is not None:
        body["hours"] = f"{wish.hours:f}"
    body |= {name: value for name in ("name", "purpose") if (value := getattr(wish, name))}
    if wish.starts_at is not None:
        body["starts_at"] = wish.starts_at.isoformat()
    if wish.priority != "normal":
        body["priority"] = wish.priority
    if wanted := dict.fromkeys([*(["spread"] if wish.spread else []), *wish.constraints], True):
        body["constraints"] = wanted
    body |= {name: value for name in ("sharing", "claim") if (value := getattr(wish, name))}
    return " \\\n  ".join(
        [
            f"curl -sS {shlex.quote(f'{settings.PORTAL_URL}/api/v1/allocations')}",
            '-H "Authorization: Bearer $GPU_PORTAL_TOKEN"',
            "-H 'Content-Type: application/json'",
            f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}",
        ]
    )
