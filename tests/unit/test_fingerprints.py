"""Which observations of a watch are recorded."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from allocations.cluster.fingerprints import Fingerprints, fingerprint
from allocations.cluster.kinds import Observation
from allocations.domain.objects import Ref

FACTS = {"phase": "Pending", "gpus": {"nvidia.com/gpu": 1}}
SEEN = Observation(
    ref=Ref("Pod", "vision", "a"),
    uid="1",
    resource_version=10,
    at=datetime(2026, 11, 2, 12, tzinfo=UTC),
    live=True,
    digest="d",
    facts=FACTS,
)
LATER = replace(SEEN, resource_version=11, at=datetime(2026, 11, 2, 13, tzinfo=UTC))


def after_a_list_of(*observations):
    found = Fingerprints()
    found.start_over(observations)
    return found


def test_a_new_revision_with_the_same_facts_is_no_change():
    assert not after_a_list_of(SEEN).is_change(LATER)


@pytest.mark.parametrize(
    "values",
    [
        {"uid": "2"},
        {"digest": "e"},
        {"deleting": True},
        {"allocation": "train"},
        {"facts": {**FACTS, "phase": "Running"}},
    ],
    ids=lambda values: next(iter(values)),
)
def test_a_field_that_the_portal_reads_is_a_change_once(values):
    known, changed = after_a_list_of(SEEN), replace(LATER, **values)
    assert known.is_change(changed)
    assert not known.is_change(changed)
    assert known.is_change(SEEN)


def test_an_object_that_was_not_listed_is_a_change():
    assert after_a_list_of().is_change(SEEN)


def test_a_deletion_is_a_change_and_so_is_the_same_object_afterwards():
    known = after_a_list_of(SEEN)
    assert known.is_change(replace(LATER, gone=True))
    assert known.is_change(LATER)


def test_a_list_replaces_what_was_known():
    known = after_a_list_of(SEEN)
    known.start_over([replace(SEEN, uid="2")])
    assert known.is_change(LATER)


def test_the_order_of_facts_does_not_matter():
    turned = dict(reversed(list(FACTS.items())))
    assert fingerprint(SEEN) == fingerprint(replace(SEEN, facts=turned))
