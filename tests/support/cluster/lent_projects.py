"""Projects of a team that are lent to tests, one test after another.

Whatever is not needed before a test begins is done meanwhile: the next project is made ahead, and one that comes back
is cleaned and compared with one that no test has had. If it differs, it is thrown away: archived.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar
from uuid import uuid4

from django.db import connection

from portal.tenants import services as tenants
from portal.tenants import structure
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, Team
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from tests.support.cluster import likeness
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.leftovers import clear
from tests.support.cluster.tenants import wait_for_members
from tests.support.cluster.waiting import eventually
from tests.support.clusters import LOCAL

T = TypeVar("T")


class LentProjects:
    def __init__(self, admin: ApiClient, team: Team, as_fresh_within_s: float = 15.0) -> None:
        """``as_fresh_within_s`` is how long the portal and Kubernetes may take to put right what a test left."""
        self.thrown_away: list[str] = []
        """What differed of each that was thrown away."""
        self._as_fresh_within_s = as_fresh_within_s
        self._admin, self._team = admin, team
        self._workers = ThreadPoolExecutor(2, "lent-projects")
        self._untouched = self._meanwhile(self._make)
        self._fresh: deque[Future[Project]] = deque()
        self._returned: deque[Future[Project | None]] = deque()
        self._made: list[Project] = []

    @contextmanager
    def lent(self) -> Iterator[Project]:
        """Yield a project that is as a fresh one; it may be lent again. At the end nothing of it is in use."""
        project = self._again() or self._first()
        yield project
        clear(self._admin, project)
        self._returned.append(self._meanwhile(lambda: self._restored(project)))

    @contextmanager
    def own(self) -> Iterator[Project]:
        """Yield a project that no test has had, nor will have; it is archived at the end."""
        project = self._first()
        yield project
        clear(self._admin, project)
        _archive(project)

    def settle(self) -> None:
        """Return once nothing is done meanwhile; the next thing is done when a project is lent or comes back."""
        wait([self._untouched, *self._fresh])
        wait(self._returned)

    def close(self) -> None:
        """Archive all projects."""
        self._workers.shutdown()
        for project in self._made:
            _archive(project)

    def _first(self) -> Project:
        project = (self._fresh.popleft() if self._fresh else self._meanwhile(self._make)).result()
        self._fresh.append(self._meanwhile(self._make))
        return project

    def _again(self) -> Project | None:
        """Return one that came back and is as a fresh one, if there is any now."""
        for coming in [coming for coming in self._returned if coming.done()]:
            self._returned.remove(coming)
            if project := coming.result():
                return project
        return None

    def _meanwhile(self, work: Callable[[], T]) -> "Future[T]":
        def done() -> T:
            try:
                return work()
            finally:
                connection.close()

        return self._workers.submit(done)

    def _make(self) -> Project:
        project = tenants.create_project(SYSTEM, self._team, f"t-{uuid4().hex[:10]}", "For tests")
        self._made.append(project)
        workqueue.enqueue(targets.project(LOCAL, project.slug))
        wait_for_members(self._admin, project)
        return project

    def _restored(self, project: Project) -> Project | None:
        """Return the project once it is as a fresh one; else throw it away."""
        self._admin.call("DELETE", self._admin.kind("event").path(project.namespace))
        different: list[str] = []
        untouched = self._untouched.result()
        # What both say of flavors is as old as what was last done in them.
        workqueue.enqueue(*(targets.project(LOCAL, one.slug) for one in (untouched, project)))

        def is_fresh() -> bool:
            fresh = likeness.likeness(self._admin, untouched)
            found = likeness.likeness(self._admin, project)
            different[:] = likeness.differences(found, fresh)
            likeness.delete_others(self._admin, project, found, fresh)
            return not different

        try:
            eventually(is_fresh, within_s=self._as_fresh_within_s)
        except AssertionError:
            self.thrown_away.append(f"{project.slug} differs in {', '.join(different)}")
            _archive(project)
            return None
        return Project.objects.select_related("team__department").get(pk=project.pk)


def _archive(project: Project) -> None:
    project.refresh_from_db()
    structure.archive_project(SYSTEM, project)
