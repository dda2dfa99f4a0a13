"""The records of what the portal applied."""

from typing import Any

import pytest

from allocations.domain.objects import Ref
from allocations.reconcile.engine import applied
from allocations.reconcile.engine.plan import DELETED
from portal.workqueue import targets
from tests.support.clusters import LOCAL

pytestmark = pytest.mark.django_db
PROJECT = targets.project(LOCAL, "vision-train")
REFS = [
    Ref("ResourceQuota", "vision-train", "one"),
    Ref("ResourceQuota", "vision-train", "two"),
    Ref("Cohort", "", "one"),
]


@pytest.fixture
def recorded() -> None:
    for number, ref in enumerate(REFS):
        response: dict[str, Any] = {"metadata": {"uid": f"u-{number}", "resourceVersion": str(number)}}
        applied.record_applied(LOCAL, ref, response, "intent", "fields", PROJECT)


def test_records_of_several_objects_are_removed_in_one_statement(recorded: None, django_assert_num_queries) -> None:
    with django_assert_num_queries(1):
        applied.forget(LOCAL, [REFS[0], REFS[2]])
    assert list(applied.applied_objects(PROJECT)) == [REFS[1]]


def test_to_remove_no_record_takes_no_statement(recorded: None, django_assert_num_queries) -> None:
    with django_assert_num_queries(0):
        applied.forget(LOCAL, [])
    assert set(applied.applied_objects(PROJECT)) == set(REFS)


def test_records_of_another_cluster_stay(recorded: None) -> None:
    applied.forget("far", REFS)
    assert set(applied.applied_objects(PROJECT)) == set(REFS)


def test_a_deletion_is_recorded_for_the_object_that_was_deleted_and_no_later_one(recorded: None) -> None:
    applied.record_deleted(LOCAL, REFS[0], "u-0")
    applied.record_deleted(LOCAL, REFS[1], "of an earlier one")
    intents = {ref: one.intent for ref, one in applied.applied_objects(PROJECT).items()}
    assert intents == {REFS[0]: DELETED, REFS[1]: "intent", REFS[2]: "intent"}
