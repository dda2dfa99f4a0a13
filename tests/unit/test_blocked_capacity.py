"""How many GPUs of a node have their share of it beside the requests of pods outside the portal."""

from dataclasses import replace
from fractions import Fraction

from quotas.catalog.blocked_capacity import BlockedCapacity, NodeUse, Supplied, of_node, promised
from quotas.catalog.node_shares import NodeShare, per_gpu

GIVES = NodeShare(190_000, 2000 * 1024, 250)
GPU = per_gpu([(GIVES, Fraction(8))])
POOL = "h100/gpu"
WHOLE = Supplied(GIVES, {POOL: 8}, {POOL: Fraction(1)})


def asked(cpu: int = 0, memory_gib: int = 0, pods: int = 0) -> NodeUse:
    return NodeUse(NodeShare(cpu * 1000, memory_gib * 1024, pods))


def units(count: int) -> dict[str, Fraction]:
    return {POOL: Fraction(count)}


def room(use: NodeUse) -> BlockedCapacity:
    return of_node("h100-0", WHOLE, use, GPU)


def test_what_the_room_of_the_system_holds_blocks_nothing() -> None:
    assert room(NodeUse()) == BlockedCapacity()
    assert room(asked(cpu=3, memory_gib=40, pods=20)) == BlockedCapacity()


def test_pods_beyond_the_room_of_the_system_block_the_gpus_whose_share_they_ask_for() -> None:
    found = room(asked(cpu=150))
    assert found.blocked == 8 - Fraction(40_000, GPU.cpu_millicores)
    assert found.blocked_units == {POOL: 7}


def test_the_scarcest_of_cpu_memory_and_pods_decides() -> None:
    assert room(asked(cpu=50, memory_gib=1000)).blocked == room(asked(memory_gib=1000)).blocked
    assert room(asked(pods=80)).blocked_units == {POOL: 2}


def test_a_gpu_that_a_foreign_pod_has_is_not_blocked_besides() -> None:
    with_its_gpu = replace(asked(cpu=23), foreign_units=units(1))
    assert room(asked(cpu=23)).blocked_units == {POOL: 1}
    assert room(with_its_gpu) == BlockedCapacity()


def test_as_many_gpus_are_blocked_whoever_has_the_others() -> None:
    rooms = [room(replace(asked(cpu=100), own_units=units(held))) for held in range(9)]
    assert {found.blocked for found in rooms} == {room(asked(cpu=100)).blocked}
    assert [found.blocked_units.get(POOL, 0) for found in rooms] == [5, 5, 5, 5, 4, 3, 2, 1, 0]


def test_what_the_portals_own_pods_ask_beyond_their_share_is_missing_too() -> None:
    found = room(NodeUse(excess=NodeShare(cpu_millicores=GPU.cpu_millicores), own_units=units(1)))
    assert found.blocked_units == {POOL: 1}
    assert "pods of allocations have" in found.problem


def test_parts_of_gpus_are_blocked_by_the_part() -> None:
    mixed = Supplied(GIVES, {"a/3g": 8, "a/1g": 16}, {"a/3g": Fraction(1, 2), "a/1g": Fraction(1, 8)})
    found = of_node("a100-0", mixed, asked(cpu=170), per_gpu([(GIVES, Fraction(6))]))
    shares = Fraction(20_000, per_gpu([(GIVES, Fraction(6))]).cpu_millicores)
    assert found.blocked == 6 - shares
    assert found.blocked_units == {"a/3g": 8 - int(shares * 2), "a/1g": 16 - int(shares * 8)}


def test_nothing_is_blocked_where_nobody_knows_what_the_node_gives() -> None:
    assert of_node("h100-0", replace(WHOLE, gives=NodeShare()), asked(cpu=150), GPU) == BlockedCapacity()
    assert of_node("h100-0", WHOLE, asked(cpu=150), NodeShare()) == BlockedCapacity()


def test_a_share_that_has_no_pods_of_its_own_lacks_none() -> None:
    assert of_node("h100-0", WHOLE, asked(pods=240), replace(GPU, pods=0)) == BlockedCapacity()
    assert of_node("h100-0", WHOLE, asked(cpu=150, pods=200), replace(GPU, pods=0)).blocked_units == {POOL: 7}


def test_a_node_without_any_room_blocks_no_more_than_it_has() -> None:
    assert room(asked(cpu=400)).blocked == 8
    assert room(asked(cpu=400)).blocked_units == {POOL: 8}


def test_operators_are_told_what_is_asked_what_is_left_and_how_to_find_it() -> None:
    assert room(asked(cpu=150)).problem == (
        "pods that are not the portal's ask for 150 of 190 CPU here, so 1 of 8 GPUs have their share of CPU; "
        "find and move them: kubectl get pods -A --field-selector spec.nodeName=h100-0"
    )
    assert "ask for 1000 of 2000 GiB of memory here" in room(asked(memory_gib=1000)).problem
    assert "take 200 of 250 pod slots here, so 1 of 8 GPUs" in room(asked(pods=200)).problem


def test_slices_are_promised_no_more_pods_than_they_may_have() -> None:
    """A whole GPU may have 16 pods and its holder, though an even part of the node is more."""
    assert GPU.pods == 28
    assert promised(GPU, [Fraction(1)], holders=1).pods == 17
    assert promised(GPU, [Fraction(1), Fraction(1, 2)], holders=1).pods == 28
