"""The portal's REST API, as one person of the demo."""

import time
import uuid
from typing import Any

import requests

from deploy.local.errors import LocalError

WAIT_S = 60.0
LOOK_EVERY_S = 0.3


class Portal:
    """A REST client. Returns parsed bodies; raises LocalError with the problem's text for an answer that is not 2xx."""

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url}/api/v1"
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, **query: str) -> dict[str, Any]:
        return self._body(self._session.get(f"{self._url}/{path}", params=query, timeout=30))

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        return self._body(self._send(path, body))

    def refused(self, path: str, **body: Any) -> dict[str, Any]:
        """Return the problem of a request that must be refused by quota or policy."""
        answer = self._send(path, body)
        if answer.status_code != 409:
            raise LocalError(f"POST {path} should be refused with 409, and was answered {answer.status_code}")
        problem: dict[str, Any] = answer.json()
        return problem

    def wait(self, id_: str, *phases: str) -> dict[str, Any]:
        """Return the allocation once it is in one of `phases`."""
        deadline = time.monotonic() + WAIT_S
        while True:
            row = self.get(f"allocations/{id_}")
            if row["phase"] in phases:
                return row
            if row["phase"] == "ended" or time.monotonic() > deadline:
                raise LocalError(
                    f"{row['name']} is {row['phase']} ({row['reason']}: {row['message']}) "
                    f"and should be {' or '.join(phases)} within {WAIT_S:.0f} s"
                )
            time.sleep(LOOK_EVERY_S)

    def _send(self, path: str, body: dict[str, Any]) -> requests.Response:
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        return self._session.post(f"{self._url}/{path}", json=body, headers=headers, timeout=30)

    def _body(self, answer: requests.Response) -> dict[str, Any]:
        if not answer.ok:
            request = answer.request
            raise LocalError(f"{request.method} {request.url} was answered {answer.status_code}: {answer.text[:1000]}")
        body: dict[str, Any] = answer.json()
        return body
