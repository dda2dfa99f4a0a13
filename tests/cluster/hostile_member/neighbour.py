"""Another team at work: it holds slices, runs pods on them, opens pages and signs in; and how long each takes."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any
from uuid import UUID

import requests
import yaml

from allocations.connect.connection import pod_yaml
from allocations.lifecycle import spec_of_row
from bench.through import Web
from portal.tenants.models import Project
from tests.cluster.hostile_member.activities import Activity, Record
from tests.support.cluster.api_client import NAMESPACED, ApiClient, Object
from tests.support.cluster.waiting import eventually

OFFERINGS = ("l40s/whole", "h100/whole")
"""An offering by device plugin and one by DRA."""
LOOK_EVERY_S = 0.03
"""How often the row of an allocation is read. Every read takes time from the processors that are measured."""
WITHIN_S = 60
TIMEOUT_S = 60


@dataclass(frozen=True)
class Login:
    """A username and its password."""

    username: str
    password: str


def _until(events: Iterator[Object], is_met: Callable[[Object], bool]) -> None:
    """Read events until one meets the condition. Raises AssertionError if the watch ends before."""
    assert any(map(is_met, events)), "the watch of the neighbour's pod ended"


class Neighbour:
    def __init__(self, url: str, token: str, logins: list[Login], tenant: ApiClient, project: Project) -> None:
        """``url`` is the portal's. ``token`` and ``tenant`` (kubectl) belong to the first of ``logins``; the
        second opens pages.
        """
        self._url, self._web, self._tenant, self._project = url, Web(url, token), tenant, project
        self._logins = logins

    def activities(self) -> list[Activity]:
        """Return the activities. The people sign in alternately, each as rarely as the limit per name allows.

        The pauses are so long that the team alone keeps two cores less than half busy: on a machine that is busy anyway
        any other load doubles the times.
        """
        return [
            *(Activity(partial(self._hold, offering), pause_s=6.0) for offering in OFFERINGS),
            Activity(self._pages(), pause_s=3.0),
            Activity(partial(self._sign_in, cycle(self._logins)), pause_s=4.0),
        ]

    def _hold(self, offering: str, record: Record) -> None:
        """Measure from the request to the end of an allocation; a pod runs on it meanwhile."""
        id_, seconds = self._web.hold({"project": self._project.slug, "offering": offering}, LOOK_EVERY_S)
        record(f"POST to active, {offering}", seconds)
        record(f"pod to running, {offering}", self._run_pod(id_))
        self._web.give_back(id_)

    def _run_pod(self, id_: UUID) -> float:
        """Return the seconds until the pod from `connect` runs; it is deleted afterwards.

        A refusal is retried, since policies may not know the allocation yet.
        """
        pod = yaml.safe_load(pod_yaml(spec_of_row.rows().get(pk=id_)))
        path, name = NAMESPACED["Pod"].format(self._project.namespace), pod["metadata"]["name"]
        with self._tenant.watching(path, name, WITHIN_S) as events:
            start = time.perf_counter()
            eventually(lambda: self._is_created(path, pod), within_s=WITHIN_S, every_s=LOOK_EVERY_S)
            _until(events, lambda event: event["object"]["status"].get("phase") == "Running")
            seconds = time.perf_counter() - start
            self._tenant.call("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 1})
            _until(events, lambda event: event["type"] == "DELETED")
        return seconds

    def _is_created(self, path: str, pod: dict[str, Any]) -> bool:
        answer = self._tenant.call("POST", path, pod)
        unknown = answer.status == 403 and "create it again in a moment" in answer.message
        assert unknown or answer.status == 201, f"the neighbour's pod: {answer.status} {answer.message}"
        return not unknown

    def _pages(self) -> Callable[[Record], None]:
        """Open each page once, in a browser's session."""
        session = requests.Session()
        self._signed_in(session, self._logins[1])
        team = self._project.team.slug
        pages = {
            "page of one's own GPUs": "/",
            "page to request, the catalogue": "/request",
            "page of the queue": f"/queues/{team}",
            "page of the project": f"/projects/{self._project.slug}",
        }

        def once(record: Record) -> None:
            for name, path in pages.items():
                start = time.perf_counter()
                answer = session.get(f"{self._url}{path}", timeout=TIMEOUT_S, allow_redirects=False)
                record(name, time.perf_counter() - start)
                assert answer.status_code == 200, f"GET {path}: {answer.status_code}"

        return once

    def _sign_in(self, logins: Iterator[Login], record: Record) -> None:
        with requests.Session() as session:
            record("sign-in", self._signed_in(session, next(logins)))

    def _signed_in(self, session: requests.Session, login: Login) -> float:
        """Return the seconds until the right password was accepted, with retries if the portal says to retry."""
        session.get(f"{self._url}/login", timeout=TIMEOUT_S)
        token = session.cookies["csrftoken"]
        fields = {"username": login.username, "password": login.password, "csrfmiddlewaretoken": token}

        def is_in() -> bool:
            answer = session.post(f"{self._url}/login", fields, timeout=TIMEOUT_S, allow_redirects=False)
            assert answer.status_code in (302, 429, 503), f"sign-in: {answer.status_code}"
            return answer.status_code == 302

        start = time.perf_counter()
        eventually(is_in, within_s=WITHIN_S, every_s=0.5)
        return time.perf_counter() - start
