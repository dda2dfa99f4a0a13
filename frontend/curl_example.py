"""The curl command for a request by REST, which the page shows."""

import json
import shlex

from django.conf import settings

from allocations.domain.allocation_spec import AllocationRequest


def as_curl(request: AllocationRequest) -> str:
    return " \\\n  ".join(
        [
            f"curl -sS {shlex.quote(f'{settings.PORTAL_URL}/api/v1/allocations')}",
            '-H "Authorization: Bearer $GPU_PORTAL_TOKEN"',
            "-H 'Content-Type: application/json'",
            f"-d {shlex.quote(json.dumps(request.request_body(), ensure_ascii=False))}",
        ]
    )
