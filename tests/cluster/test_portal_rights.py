"""The portal uses each right that it has, or docs/evidence/portal-rights.md says what it has it for; it lacks none.

By the API server's audit log, after all other tests of the suite (conftest.py).
"""

import os

import pytest

from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from docs.generate.markdown import rows_of
from tests.support.cluster.portal_requests import Asked, Right, asked, granted

pytestmark = [pytest.mark.cluster, pytest.mark.last]
TRIED = {Right("get", "configmaps")}
"""Denied as it should be: preflight reads Kueue's configuration where an administrator lets it."""
PAGE = REPOSITORY / "docs" / "evidence" / "portal-rights.md"
FOLDER = REPOSITORY / "tests" / "cluster"


@pytest.fixture(scope="module")
def requests(local: Local) -> list[Asked]:
    log = local.home.log("audit")
    if not log.exists():
        pytest.skip("the API server writes no audit log: start the stack with APISERVER_AUDIT=1")
    return asked(log)


def explained() -> set[Right]:
    """Return the rights of the page's table, whose cells have verbs and resources in code, with commas between."""
    rows = rows_of(PAGE.read_text(encoding="utf-8"), "verb")
    return {
        Right(verb.strip(" `"), resource.strip(" `"))
        for row in rows
        for verb in row["verb"].split(",")
        for resource in row["resource"].split(",")
    }


def test_rbac_denied_the_portal_nothing(requests: list[Asked]) -> None:
    assert [f"{one.right} ({one.where})" for one in requests if one.is_denied and one.right not in TRIED] == []


def test_no_right_is_explained_that_the_portal_lacks() -> None:
    assert sorted(map(str, explained() - granted())) == []


def test_each_right_was_used_or_is_explained(requests: list[Asked], request: pytest.FixtureRequest) -> None:
    ran = {item.path.name for item in request.session.items}
    left_out = {path.name for path in FOLDER.glob("test_*.py")} - ran - {"test_hostile_member.py"}
    if left_out and "PORTAL_RIGHTS" not in os.environ:
        pytest.skip(f"{len(left_out)} files of tests/cluster did not run, which use the rights")
    used = {one.right for one in requests if not one.is_denied}
    assert sorted(map(str, granted() - used - explained())) == []
