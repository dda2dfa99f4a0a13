"""Whether an object still has what was last applied: by the portal's field ownership, and by their content."""

import copy
from typing import Any

import pytest

from allocations.cluster import owned_fields
from allocations.cluster.kinds import our_fields
from allocations.cluster.names import FIELD_MANAGER

OWNED = {
    "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {".": {}, 'v:"kept"': {}}},
    "f:spec": {"f:hard": {"f:pods": {}}, "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}}}},
}


def applied(**entry: Any) -> dict[str, Any]:
    ours = {"manager": FIELD_MANAGER, "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": OWNED, **entry}
    return {
        "metadata": {"labels": {"app": "x", "other": "y"}, "finalizers": ["kept", "other"], "managedFields": [ours]},
        "spec": {
            "hard": {"pods": "16", "cpu": "4"},
            "ports": [{"port": 80, "protocol": "UDP", "name": "b"}, {"port": 80, "protocol": "TCP", "name": "a"}],
        },
    }


def changed(*path: Any, to: Any) -> dict[str, Any]:
    raw = copy.deepcopy(applied())
    *way, last = path
    place: Any = raw
    for step in way:
        place = place[step]
    place[last] = to
    return raw


def test_it_returns_what_stands_in_the_fields_that_we_own_and_nothing_else() -> None:
    assert owned_fields.owned_values(applied()) == {
        "f:metadata": {"f:labels": {"f:app": "x"}, "f:finalizers": {'v:"kept"': "kept"}},
        "f:spec": {"f:hard": {"f:pods": "16"}, "f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:name": "a"}}},
    }


@pytest.mark.parametrize(
    "raw",
    [
        changed("spec", "hard", "pods", to="32"),
        changed("spec", "ports", 1, "name", to="c"),
        changed("spec", "ports", to=[]),
        applied(fieldsV1={**OWNED, "f:spec": {}}),
    ],
)
def test_a_value_of_ours_that_changed_or_is_no_longer_ours_shows(raw: dict[str, Any]) -> None:
    assert our_fields(raw) != our_fields(applied())


@pytest.mark.parametrize(
    "raw",
    [
        changed("spec", "hard", "cpu", to="8"),
        changed("spec", "ports", 0, "name", to="c"),
        applied(time="2026-01-02T00:00:00Z"),
    ],
)
def test_what_others_own_and_the_time_of_the_entry_do_not(raw: dict[str, Any]) -> None:
    assert our_fields(raw) == our_fields(applied())


@pytest.mark.parametrize("entry", [{"manager": "kubectl"}, {"operation": "Update"}, {"subresource": "status"}])
def test_an_object_that_we_did_not_apply_has_none(entry: dict[str, str]) -> None:
    assert our_fields(applied(**entry)) == ""
