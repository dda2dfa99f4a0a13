"""plan(): whatever the cluster's state, its actions lead to the desired state, and then there are none."""

from dataclasses import dataclass, replace
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from allocations.domain.actions import Action, Apply, Delete, DesiredState, digest
from allocations.domain.objects import Applied, Manifest, ObservedObject, Ref, Snapshot
from allocations.reconcile.engine.plan import DELETED, IMMUTABLE_KINDS, plan

REFS = [Ref(kind, "n", name) for kind in ("ResourceQuota", "Pod") for name in "abc"]
STATES = ("absent", "applied", "edited", "outdated", "replaced", "deleting", "deleted", "unknown", "stuck")
"""``deleted``: applied once, and deleted since; ``unknown``: exists, and was not recorded as applied; ``stuck``: a
finalizer keeps it for a while after its deletion.
"""
ROUNDS = 12


def manifest(ref: Ref) -> Manifest:
    return {"kind": ref.kind, "metadata": {"namespace": ref.namespace, "name": ref.name}, "spec": {"new": True}}


@dataclass(frozen=True)
class Thing:
    uid: str
    revision: int
    fields: str
    deleting: bool = False
    finalizer: bool = False


class World:
    """A cluster of objects, and the record of applying them."""

    def __init__(self, states: dict[Ref, str]) -> None:
        self._numbers = count(1)
        self.things: dict[Ref, Thing] = {}
        self.applied: dict[Ref, Applied] = {}
        for ref, state in states.items():
            self._put(ref, state)
        self.revision = next(self._numbers)

    def _put(self, ref: Ref, state: str) -> None:
        if state == "absent":
            return
        number, intent = next(self._numbers), digest(manifest(ref))
        if state != "unknown":
            remembered = "old" if state == "outdated" else intent
            self.applied[ref] = Applied(ref, f"uid-{number}", number, remembered, remembered)
        if state == "deleted":
            return
        thing = Thing(f"uid-{number}", number, "old" if state == "outdated" else intent)
        changes: dict[str, dict[str, object]] = {
            "edited": {"fields": "someone else's"},
            "replaced": {"uid": "another"},
            "deleting": {"deleting": True, "finalizer": True},
            "stuck": {"finalizer": True},
        }
        self.things[ref] = replace(thing, revision=next(self._numbers), **changes.get(state, {}))  # type: ignore[arg-type]

    def view(self) -> Snapshot:
        seen = [
            ObservedObject(ref, thing.uid, thing.revision, digest=thing.fields, deleting=thing.deleting)
            for ref, thing in self.things.items()
        ]
        return Snapshot(seen, {ref.kind: self.revision for ref in REFS})

    def perform(self, action: Action) -> None:
        self.revision = next(self._numbers)
        match action:
            case Apply(intent):
                thing = self.things.get(action.ref, Thing(f"uid-{self.revision}", self.revision, ""))
                thing = replace(thing, revision=self.revision, fields=digest(intent))
                self.things[action.ref] = thing
                self.applied[action.ref] = Applied(action.ref, thing.uid, self.revision, digest(intent), digest(intent))
            case Delete(ref, uid):
                thing = self.things[ref]
                assert thing.uid == uid
                if thing.finalizer:
                    self.things[ref] = replace(thing, revision=self.revision, deleting=True)
                else:
                    del self.things[ref]

    def finalize(self) -> None:
        """Remove the finalizers of objects that are being deleted."""
        self.revision = next(self._numbers)
        self.things = {ref: thing for ref, thing in self.things.items() if not thing.deleting}


@st.composite
def cases(draw: st.DrawFn) -> tuple[World, DesiredState]:
    world = World({ref: draw(st.sampled_from(STATES)) for ref in REFS})
    kept = draw(st.sets(st.sampled_from(REFS)))
    others = [ref for ref in REFS if ref not in kept]
    cut = draw(st.integers(0, len(others)))
    first = {*others[:cut], *draw(st.sets(st.sampled_from(REFS)))}
    groups = [[ref for ref in REFS if ref in first], others[cut:]]
    return world, DesiredState(objects=[manifest(ref) for ref in REFS if ref in kept], unwanted=groups)


@settings(max_examples=50, deadline=None)
@given(cases())
def test_its_actions_lead_to_what_is_wanted_and_then_there_are_none(case: tuple[World, DesiredState]) -> None:
    world, wanted = case
    for _ in range(ROUNDS):
        for action in plan(wanted, world.view(), world.applied):
            world.perform(action)
        world.finalize()
    assert plan(wanted, world.view(), world.applied) == []
    assert set(world.things) == {Ref.of_manifest(m) for m in wanted.objects}
    as_wanted = {ref for ref, thing in world.things.items() if thing.fields == digest(manifest(ref))}
    assert {ref.kind for ref in world.things.keys() - as_wanted} <= IMMUTABLE_KINDS
    assert all(world.things[ref].fields == "old" for ref in world.things.keys() - as_wanted)


def test_a_pod_that_stands_is_not_made_again_for_a_better_form() -> None:
    holder, quota = Ref("Pod", "n", "a"), Ref("ResourceQuota", "n", "a")
    world = World({holder: "outdated", quota: "outdated"})
    wanted = DesiredState(objects=[manifest(holder), manifest(quota)])
    assert [action.ref for action in plan(wanted, world.view(), world.applied)] == [quota]


def test_a_pod_of_a_former_form_that_was_edited_is_left_too() -> None:
    holder = Ref("Pod", "n", "a")
    world = World({holder: "outdated"})
    world.things[holder] = replace(world.things[holder], fields="someone else's")
    assert plan(DesiredState(objects=[manifest(holder)]), world.view(), world.applied) == []


@settings(max_examples=50, deadline=None)
@given(cases())
def test_what_was_just_applied_is_not_applied_again_from_an_older_view(case: tuple[World, DesiredState]) -> None:
    world, wanted = case
    before = world.view()
    for action in plan(wanted, before, world.applied):
        world.perform(action)
    assert [a for a in plan(wanted, before, world.applied) if isinstance(a, Apply)] == []


@settings(max_examples=50, deadline=None)
@given(cases())
def test_a_group_is_left_alone_until_all_before_it_are_gone(case: tuple[World, DesiredState]) -> None:
    world, wanted = case
    kept = {Ref.of_manifest(m) for m in wanted.objects}
    for _ in range(ROUNDS):
        actions = plan(wanted, world.view(), world.applied)
        deleted = {action.ref for action in actions if isinstance(action, Delete)}
        if deleted & set(wanted.unwanted[1]) - set(wanted.unwanted[0]):
            assert not [ref for ref in wanted.unwanted[0] if ref not in kept and ref in world.things]
        for action in actions:
            world.perform(action)
        world.finalize()


def test_it_deletes_the_very_object_that_it_saw() -> None:
    world = World({REFS[0]: "unknown"})
    assert plan(DesiredState(unwanted=[[REFS[0]]]), world.view(), {}) == [Delete(REFS[0], world.things[REFS[0]].uid)]


def test_a_deletion_that_was_answered_is_not_asked_again_for_the_same_object() -> None:
    ref = REFS[0]
    view, wanted = Snapshot([ObservedObject(ref, "uid-1", 5)]), DesiredState(unwanted=[[ref]])
    assert plan(wanted, view, {ref: Applied(ref, "uid-1", 4, DELETED, "")}) == []
    assert plan(wanted, view, {ref: Applied(ref, "uid-0", 4, DELETED, "")}) == [Delete(ref, "uid-1")]


def test_an_object_that_no_list_has_yet_shown_is_not_taken_for_gone() -> None:
    """Its kind was last listed before it was applied."""
    known = Applied(REFS[0], "uid", 7, digest(manifest(REFS[0])), "")
    wanted = DesiredState(objects=[manifest(REFS[0])])
    assert plan(wanted, Snapshot([], {REFS[0].kind: 6}), {REFS[0]: known}) == []
    assert plan(wanted, Snapshot([], {REFS[0].kind: 7}), {REFS[0]: known}) == [Apply(manifest(REFS[0]), "deleted")]
