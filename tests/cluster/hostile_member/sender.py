"""Sends the hostile member's requests with a kubeconfig, a token and a password."""

import base64
import json
import ssl
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from tests.cluster.hostile_member.calls import SIGN_IN, UNKNOWN_ID, Call, Credentials
from tests.cluster.hostile_member.tally import NO_ANSWER

ADDRESS = "127.0.0.2"
"""The member's own client address, so that limits per address do not affect others, who come from 127.0.0.1."""
READ_AT_MOST = 65_536
"""The bytes read of an answer; the connection is closed before the rest."""
STREAMS = 100
THROTTLED = 429
TIMEOUT_S = 30


@dataclass(frozen=True)
class MemberAccess:
    """The member's credentials. ``kubeconfig`` is the text of the file from `connect`."""

    kubeconfig: str
    portal: str
    token: str
    username: str
    password: str


class Sender:
    """Sends requests; safe to share between threads. ``begin`` signs in to the pages first."""

    def __init__(self, access: MemberAccess, connections: int) -> None:
        config = yaml.safe_load(access.kubeconfig)
        cluster = config["clusters"][0]["cluster"]
        trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        options: dict[str, Any] = {"maxsize": connections, "retries": False, "timeout": TIMEOUT_S}
        self._access, self._server = access, str(cluster["server"])
        self._cluster_token = config["users"][0]["user"]["token"]
        self._cluster = urllib3.PoolManager(ssl_context=trust, **options)
        self._portal = urllib3.PoolManager(source_address=(ADDRESS, 0), **options)
        self._allocation_ids: dict[str, deque[str]] = {}
        self._streams: deque[BaseHTTPResponse] = deque()
        self._lock = threading.Lock()
        self._csrf = self._session = ""

    def begin(self) -> None:
        """Sign in to the pages; raise RuntimeError if that is refused."""
        self._csrf = self._cookie(self._portal.request("GET", f"{self._access.portal}{SIGN_IN}"), "csrftoken")
        form = {"username": self._access.username, "password": self._access.password, "csrfmiddlewaretoken": self._csrf}
        answer = self._portal.request(
            "POST", f"{self._access.portal}{SIGN_IN}", fields=form, encode_multipart=False, redirect=False,
            headers={"Cookie": f"csrftoken={self._csrf}"},
        )  # fmt: skip
        self._session = self._cookie(answer, "sessionid")

    def send(self, kind: str, call: Call) -> tuple[int, str]:
        """Send a call; return the status and the message of a refusal, or NO_ANSWER and the error."""
        try:
            answer = self._request(kind, call)
            if call.stream and answer.status == 200:
                self._keep_open(answer)
                return 200, ""
            message = _message(answer)
            if answer.status == THROTTLED and call.credentials is Credentials.KUBECONFIG:
                self._close_streams()
            if answer.status == 201 and call.credentials is Credentials.TOKEN:
                self._allocation_ids.setdefault(kind, deque()).append(json.loads(message)["id"])
            return answer.status, message if answer.status >= 400 else ""
        except (HTTPError, OSError, ValueError) as error:
            return NO_ANSWER, repr(error)

    def close(self) -> None:
        self._close_streams()
        self._cluster.clear()
        self._portal.clear()

    def _request(self, kind: str, call: Call) -> BaseHTTPResponse:
        body, headers = _body(call), {"Content-Type": call.content_type, **call.headers}
        query = f"?{urlencode(call.query)}" if call.query else ""
        if call.credentials is Credentials.KUBECONFIG:
            headers |= {"Authorization": f"Bearer {self._cluster_token}"}
            url = f"{self._server}{call.path}{query}"
            return self._cluster.request(call.method, url, body=body, headers=headers, preload_content=False)
        if call.path == SIGN_IN:
            headers |= {"Cookie": f"csrftoken={self._csrf}"}
            body = (body or b"") + f"&csrfmiddlewaretoken={self._csrf}".encode()
        headers |= self._portal_headers(call.credentials)
        url = f"{self._access.portal}{call.path.replace('{id}', self._created_id(kind))}{query}"
        return self._portal.request(call.method, url, body=body, headers=headers, redirect=False, preload_content=False)

    def _portal_headers(self, credentials: Credentials) -> Mapping[str, str]:
        if credentials is Credentials.TOKEN:
            return {"Authorization": f"Bearer {self._access.token}"}
        return {"Cookie": f"sessionid={self._session}"} if credentials is Credentials.SESSION else {}

    def _created_id(self, kind: str) -> str:
        try:
            return self._allocation_ids[kind].popleft()
        except (KeyError, IndexError):
            return UNKNOWN_ID

    def _keep_open(self, answer: BaseHTTPResponse) -> None:
        with self._lock:
            self._streams.append(answer)
            old = self._streams.popleft() if len(self._streams) > STREAMS else None
        if old is not None:
            old.close()

    def _close_streams(self) -> None:
        """Close all watches: those that nobody reads keep the seats of the member's own team, and with them kept he
        could attack no more.
        """
        with self._lock:
            streams, self._streams = self._streams, deque()
        for stream in streams:
            stream.close()

    @staticmethod
    def _cookie(answer: BaseHTTPResponse, name: str) -> str:
        cookies: SimpleCookie = SimpleCookie()
        for header in answer.headers.getlist("Set-Cookie"):
            cookies.load(header)
        if name not in cookies:
            raise RuntimeError(f"no cookie {name} with status {answer.status}: {answer.data[:300]!r}")
        return cookies[name].value


def _body(call: Call) -> bytes | None:
    if call.body is None or isinstance(call.body, bytes):
        return call.body
    return json.dumps(call.body).encode()


def _message(answer: BaseHTTPResponse) -> str:
    """Return the answer's text, or the message of a Kubernetes Status; the connection is free again."""
    text = answer.read(READ_AT_MOST).decode(errors="replace")
    if _is_at_end(answer):
        answer.release_conn()
    else:
        answer.close()
    if answer.status < 400:
        return text
    try:
        document = json.loads(text)
        return str(document.get("message") or document.get("detail") or text)
    except (ValueError, AttributeError):
        return text


def _is_at_end(answer: BaseHTTPResponse) -> bool:
    rest: Iterator[bytes] = iter(lambda: answer.read(1), b"")
    return next(rest, None) is None
