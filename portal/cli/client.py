"""HTTP client of the commands: parsed answers, and problems as errors."""

import time
import uuid
from typing import Any, Self
from urllib.parse import quote

import click
import requests
from requests.auth import AuthBase
from urllib3.exceptions import LocationParseError

from portal.cli import printable
from portal.cli.config import Config
from portal.cli.errors import BusyError, CommandError, NoAnswerError, ProblemError
from portal.cli.output_format import TEXT, Output

TIMEOUT_S, PATIENCE_S = 60, 120
TRIES = 4
QUICK_TIMEOUT_S, QUICK_TRIES = 5, 1
SILENT_S = 2.0
"""The longest pause of which nothing is said."""
BUSY = (429, 502, 503, 504)
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 30.0
WRONG_URLS = (
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
    requests.exceptions.MissingSchema,
    LocationParseError,
)


def segment(name: str) -> str:
    """Return a name as one segment of a path, whatever is in it."""
    return quote(name, safe="")


class Bearer(AuthBase):
    """Signs requests with a token. With it, requests reads no password of the host from ``~/.netrc``."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class MissingMemberError(CommandError, KeyError):
    """An answer lacks a member. As a KeyError, it is what a template takes for a path that finds nothing."""


class Answer(dict[str, Any]):
    """An object of an answer. Raises MissingMemberError for a member that it lacks, as those of other servers do."""

    def __missing__(self, name: str) -> Any:
        detail = f"The answer has no {name}, which this command needs."
        hint = "Is the portal of another version, or the URL another one?"
        raise MissingMemberError(detail, reason="no_portal", hint=hint)


class Client:
    """A lost or busy answer is asked for again: ``tries`` times in all, each for ``timeout_s`` at most, and together
    for ``patience_s`` (``PATIENCE_S`` if None). Answers are such as may be printed: for text, each string on one line.
    """

    def __init__(
        self,
        config: Config,
        *,
        output: Output = TEXT,
        tries: int = TRIES,
        timeout_s: float = TIMEOUT_S,
        patience_s: float | None = None,
    ) -> None:
        self.config, self.output = config, output
        self._tries, self._patience_s = tries, PATIENCE_S if patience_s is None else patience_s
        self._timeout_s = min(timeout_s, self._patience_s)
        self._url = f"{config.url}/api/v1"
        self._session = requests.Session()
        self._session.auth = Bearer(config.token)

    def quick(self) -> Self:
        """Return a client that gives up within seconds, for when somebody waits at a prompt."""
        return type(self)(self.config, output=self.output, tries=QUICK_TRIES, timeout_s=QUICK_TIMEOUT_S)

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._call("GET", path, params={key: value for key, value in query.items() if value not in (None, "")})

    def get_exactly(self, path: str, **query: Any) -> dict[str, Any]:
        """Return an answer as it is, for what is a file and not text for a terminal."""
        return self._body(self._answer("GET", path, params=query))

    def post(self, path: str, body: dict[str, Any], key: str = "") -> dict[str, Any]:
        """Send a POST with an idempotency key, so that a retry after a lost answer has no second effect."""
        return self._call("POST", path, json=body, headers={"Idempotency-Key": key or str(uuid.uuid4())})

    def post_once(self, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
        """The same for what has another effect each time: if no answer comes, the error names the key."""
        try:
            return self.post(path, body, key)
        except NoAnswerError as error:
            detail, reason = error.problem["detail"], error.problem["reason"]
            hint = f"It may have arrived. With --idempotency-key {key}, the same command has its effect only once."
            raise NoAnswerError(detail, reason=reason, hint=hint) from error

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
            page = self._following(page)

    def whole(self, path: str, **query: Any) -> dict[str, Any]:
        """Return the answer of a list with the rows of all its pages."""
        found = page = self.get(path, **query)
        while page["next"]:
            page = self._following(page)
            found["results"] += page["results"]
        found["next"] = None
        return found

    def _following(self, page: dict[str, Any]) -> dict[str, Any]:
        """Return the next page, from the configured address: a portal behind a proxy may know another one of itself."""
        return self._call("GET", page["next"].partition("/api/v1/")[2])

    def text(self, path: str, **query: Any) -> str:
        """Return an answer that is no JSON."""
        answer = self._answer("GET", path, params={key: value for key, value in query.items() if value})
        if not answer.ok:
            self._body(answer)
        return answer.text

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        body = self._body(self._answer(method, path, **options))
        return printable.one_lines(body) if self.output.is_text else body

    def _answer(self, method: str, path: str, **options: Any) -> requests.Response:
        url = f"{self._url}/{path}"
        deadline = time.monotonic() + self._patience_s
        for again in range(self._tries):
            left_s = max(deadline - time.monotonic(), 0.1)
            answer, lost = None, None
            try:
                answer = self._session.request(
                    method, url, timeout=min(self._timeout_s, left_s), allow_redirects=False, **options
                )
                pause_s = _requested_pause(answer) or FIRST_PAUSE_S * 2**again
            except WRONG_URLS as error:
                raise self._wrong_url(error) from None
            except requests.RequestException as error:
                lost, pause_s = error, FIRST_PAUSE_S * 2**again
            except OSError as error:  # a bundle of certificates that is not there
                raise CommandError(f"{error}.".replace("..", "."), reason="not_configured") from error
            is_last = again == self._tries - 1 or time.monotonic() + pause_s > deadline
            if answer is not None and (is_last or not _is_busy(answer)):
                return answer
            if lost is not None and is_last:
                raise self._unreachable(lost) from lost
            if answer is not None and pause_s > SILENT_S and self.output.is_text:
                click.echo(f"The portal asks to wait {pause_s:g} s; trying again then.", err=True)
            time.sleep(pause_s)
        raise AssertionError("the last try returns or raises")

    def _body(self, answer: requests.Response) -> dict[str, Any]:
        status = answer.status_code
        is_busy = status >= requests.codes.server_error or status == requests.codes.too_many_requests
        error = NoAnswerError if is_busy else CommandError
        if answer.is_redirect:
            where = answer.headers["Location"]
            raise CommandError(f"{self.config.url} leads to {where}.", reason="url_invalid", hint="Use that address.")
        try:
            body = answer.json(object_hook=Answer) if answer.content else Answer()
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, Answer):
            detail = f"{self.config.url} answered with HTTP status {status} and no JSON object, as no portal does."
            raise error(detail, reason="no_portal")
        if not answer.ok and not body:
            detail = f"{self.config.url} answered with HTTP status {status}, and did not say why."
            raise error(detail, reason="no_answer")
        if not answer.ok:
            raise (BusyError if is_busy else ProblemError)(body)
        return body

    def _wrong_url(self, error: Exception) -> CommandError:
        if "SOCKS" in str(error):
            return CommandError(
                "A SOCKS proxy cannot be used.", reason="not_configured", hint="Unset ALL_PROXY, or name an HTTP proxy."
            )
        return CommandError(
            f"{self.config.url} is not the URL of a portal.",
            reason="url_invalid",
            hint="It begins with http:// or https://.",
        )

    def _unreachable(self, error: requests.RequestException) -> CommandError:
        """Return the error for a portal that gave no answer; one sentence."""
        detail = f"{self.config.url} cannot be reached: {self._cause(error)}."
        return NoAnswerError(detail, reason="unreachable")

    def _cause(self, error: requests.RequestException) -> str:
        if isinstance(error, requests.exceptions.ProxyError):
            return "the proxy refused or did not answer"
        if isinstance(error, requests.exceptions.SSLError):
            is_trust = "CERTIFICATE" in str(error).upper()
            return "its certificate is not trusted" if is_trust else "it does not speak TLS; is it http://?"
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


def _requested_pause(answer: requests.Response) -> float:
    """Return the seconds of Retry-After; 0 if it names none."""
    given = answer.headers.get("Retry-After", "")
    return min(float(given), MAX_PAUSE_S) if given.isdecimal() else 0
