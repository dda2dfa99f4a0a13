"""HTTP client of the commands: parsed answers, and problems as errors."""

import json
import time
import uuid
from typing import IO, Any

import click
import requests

from portal.cli.config import Config

TIMEOUT_S = 60
TRIES = 4
BUSY = (429, 503)
MAX_PAUSE_S = 30.0


class ProblemError(click.ClickException):
    """An answer that is not 2xx; exit code 1. With `--output json` the problem is printed to standard output."""

    def __init__(self, problem: dict[str, Any], as_json: bool) -> None:
        super().__init__(words(problem))
        self.problem, self.as_json = problem, as_json

    def show(self, file: IO[Any] | None = None) -> None:
        if self.as_json:
            click.echo(json.dumps(self.problem, indent=2))
        else:
            super().show(file)


def words(problem: dict[str, Any]) -> str:
    """Return a problem as text: what happened, why, and what to do."""
    lines = [problem.get("detail") or problem.get("title") or f"The portal answered {problem.get('status')}."]
    if hint := problem.get("hint"):
        lines.append(hint)
    for found in problem.get("dimensions", [])[1:]:
        lines.append(f"Also: {found['detail']}")
    for other in problem.get("alternatives", []):
        price = f", {other['price']} in all" if other.get("price") else ""
        lines.append(f"Works ({other['fits']}): {other['count']} × {other['offering']}{price}")
    return "\n".join(lines)


class Client:
    def __init__(self, config: Config, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._url = f"{config.url}/api/v1"
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {config.token}"

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._call("GET", path, params={key: value for key, value in query.items() if value not in (None, "")})

    def post(self, path: str, body: dict[str, Any], key: str = "") -> dict[str, Any]:
        """Send a POST with an idempotency key, so that a retry after a lost answer has no second effect."""
        return self._call("POST", path, json=body, headers={"Idempotency-Key": key or str(uuid.uuid4())})

    def delete(self, path: str) -> None:
        self._call("DELETE", path)

    def pages(self, path: str, most: int, **query: Any) -> list[dict[str, Any]]:
        """Return the rows of a list, page after page, at most `most`."""
        rows: list[dict[str, Any]] = []
        page = self.get(path, limit=min(most, 200), **query)
        while True:
            rows += page["results"]
            if not page["next"] or len(rows) >= most:
                return rows[:most]
            page = self._call("GET", page["next"])

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        url = path if path.startswith(self._url) else f"{self._url}/{path}"
        for again in range(TRIES):
            try:
                answer = self._session.request(method, url, timeout=TIMEOUT_S, **options)
            except requests.RequestException as error:
                if again == TRIES - 1:
                    raise click.ClickException(f"{self._url} does not answer: {error}") from error
                time.sleep(0.5 * 2**again)
                continue
            if answer.status_code not in BUSY or again == TRIES - 1:
                break
            time.sleep(_pause(answer))
        return self._body(answer)

    def _body(self, answer: requests.Response) -> dict[str, Any]:
        try:
            body: dict[str, Any] = answer.json() if answer.content else {}
        except ValueError:
            body = {"status": answer.status_code, "detail": f"{answer.url} is no portal: {answer.text[:200]}"}
            raise ProblemError(body, self.as_json) from None
        if not answer.ok:
            raise ProblemError(body, self.as_json)
        return body


def _pause(answer: requests.Response) -> float:
    given = answer.headers.get("Retry-After", "1")
    return min(float(given), MAX_PAUSE_S) if given.isdecimal() else 1.0
