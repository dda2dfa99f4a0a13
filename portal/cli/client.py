"""HTTP client of the commands: parsed answers, and problems as errors."""

import time
import uuid
from typing import Any, Self

import requests

from portal.cli.config import Config
from portal.cli.errors import CommandError, ProblemError
from portal.cli.output_format import TEXT, Output

TIMEOUT_S = 60
TRIES = 4
QUICK_TIMEOUT_S, QUICK_TRIES = 5, 1
BUSY = (429, 502, 503, 504)
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 30.0
WRONG_URLS = (
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
    requests.exceptions.MissingSchema,
)


class Client:
    """``tries`` and ``timeout_s`` hold for each call: a lost or busy answer is asked for again."""

    def __init__(
        self, config: Config, *, output: Output = TEXT, tries: int = TRIES, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.config, self.output = config, output
        self._tries, self._timeout_s = tries, timeout_s
        self._url = f"{config.url}/api/v1"
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {config.token}"

    def quick(self) -> Self:
        """Return a client that gives up within seconds, for when somebody waits at a prompt."""
        return type(self)(self.config, output=self.output, tries=QUICK_TRIES, timeout_s=QUICK_TIMEOUT_S)

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

    def whole(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the answer of a list with the rows of all its pages."""
        found = page = self.get(path, **query)
        while page["next"]:
            page = self._call("GET", page["next"])
            found["results"] += page["results"]
        return {**found, "next": None}

    def text(self, path: str, **query: Any) -> str:
        """Return an answer that is no JSON."""
        answer = self._answer("GET", path, params={key: value for key, value in query.items() if value})
        if not answer.ok:
            self._body(answer)
        return answer.text

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        return self._body(self._answer(method, path, **options))

    def _answer(self, method: str, path: str, **options: Any) -> requests.Response:
        url = path if path.startswith(self._url) else f"{self._url}/{path}"
        for again in range(self._tries):
            is_last = again == self._tries - 1
            try:
                answer = self._session.request(method, url, timeout=self._timeout_s, **options)
            except WRONG_URLS:
                raise CommandError(
                    f"{self.config.url} is not the URL of a portal.",
                    reason="url_invalid",
                    hint="It begins with http:// or https://.",
                ) from None
            except requests.RequestException as error:
                if is_last:
                    raise self._unreachable(error) from error
                time.sleep(FIRST_PAUSE_S * 2**again)
                continue
            if is_last or not _is_busy(answer):
                break
            time.sleep(_pause(answer))
        return answer

    def _body(self, answer: requests.Response) -> dict[str, Any]:
        try:
            body: dict[str, Any] = answer.json() if answer.content else {}
        except ValueError:
            detail = f"{self.config.url} answered with HTTP status {answer.status_code} and no JSON, as no portal does."
            raise CommandError(detail, reason="no_portal") from None
        if not answer.ok:
            raise ProblemError(body)
        return body

    def _unreachable(self, error: requests.RequestException) -> CommandError:
        """Return the error for a portal that gave no answer; one sentence."""
        return CommandError(f"{self.config.url} cannot be reached: {self._cause(error)}.", reason="unreachable")

    def _cause(self, error: requests.RequestException) -> str:
        if isinstance(error, requests.exceptions.SSLError):
            return "its certificate is not trusted"
        if isinstance(error, requests.Timeout):
            return f"no answer within {self._timeout_s:g} s"
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, OSError) and cause.strerror:
                return cause.strerror[0].lower() + cause.strerror[1:]
            cause = cause.__cause__ or cause.__context__
        return "the connection was lost"


def _is_busy(answer: requests.Response) -> bool:
    """Whether the same request can succeed a little later."""
    if answer.status_code != requests.codes.conflict:
        return answer.status_code in BUSY
    try:
        return bool(answer.json().get("reason") == "in_progress")
    except ValueError:
        return False


def _pause(answer: requests.Response) -> float:
    given = answer.headers.get("Retry-After", "1")
    return min(float(given), MAX_PAUSE_S) if given.isdecimal() else 1.0
