"""Chooses the GPUs on which an allocation's slices cost others least, which its claims then request. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from allocations.capacity.cards import DISTINCT_GPUS, Card, Occupancy, SliceShape, group_of
from allocations.capacity.packing import FlavorDevices
from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import Geometry

Cost = tuple[int, ...]
Group = tuple[str, ...]


def choose_devices(
    devices: FlavorDevices, profile: str, count: int, constraints: Collection[str], *, spread: bool
) -> tuple[Card, ...] | None:
    """Return the card of each MIG slice, so that the fewest large instances are lost; None if they do not fit.

    1. Cards are grouped as the request's constraints require: by node, or by card, PCIe root or clique.
    2. In each group each slice goes to the card that loses least (``layouts.best_card``), where the scheduler will put
       it on the first free placement. A node on which not all of them can have their share is left out.
    3. The group whose slices cost least is taken; of equal ones the fuller, then the first by name.
    """
    if devices.geometry is None:
        return None
    found: list[tuple[Cost, int, Group, tuple[Card, ...]]] = []
    seen: set[tuple[tuple[Placement, ...], ...]] = set()
    for group, cards in sorted(_groups(devices, profile, count, constraints, spread=spread).items()):
        state = tuple(sorted(tuple(sorted(devices.occupied[card] or ())) for card in cards))
        if state in seen:  # another group just like it comes first by name
            continue
        seen.add(state)
        is_distinct = DISTINCT_GPUS in constraints
        if filled := _fill(devices.geometry, devices.occupied, cards, profile, count, is_distinct):
            fullness = sum(place.size for one in state for place in one)
            found.append((filled[1], -fullness, group, filled[0]))
    return min(found, key=lambda each: each[:3])[3] if found else None


def with_pending(devices: FlavorDevices, pending: Iterable[tuple[str, str]]) -> FlavorDevices:
    """Return the cards as they will be once the scheduler has placed pending slices, each (profile, card's UUID).

    A slice without a free placement on its card will not stay there, and is left out.
    """
    if devices.geometry is None:
        return devices
    there = dict(devices.occupied)
    by_uuid = {card.uuid: card for card in devices.cards}
    for profile, uuid in pending:
        card = by_uuid.get(uuid)
        state = there[card] if card else None
        if card and state is not None and (place := layouts.first_fit(devices.geometry, state, profile)):
            there[card] = state | {place}
    return devices.with_occupied(there)


def best_clique(
    devices: FlavorDevices, shape: SliceShape, count: int, constraints: Collection[str], *, spread: bool
) -> str:
    """Return the clique with the most room, of those that take the request now or else ever; "" if none does."""
    for empty in (False, True):
        rooms = {
            name: devices.of_clique(name).max_colocated(shape, constraints, spread=spread, empty=empty)
            for name in {card.clique for card in devices.cards if card.clique}
        }
        fitting = [name for name in sorted(rooms) if rooms[name] >= count]
        if fitting:
            return max(fitting, key=lambda name: rooms[name])
    return ""


def _groups(
    devices: FlavorDevices, profile: str, count: int, constraints: Collection[str], *, spread: bool
) -> dict[Group, list[Card]]:
    """Cards that slices of one request may be on together, but for those of nodes that cannot have all of them."""
    bounds = devices.node_bounds(SliceShape("mig", profile))
    groups: dict[Group, list[Card]] = defaultdict(list)
    for card in devices.cards:
        group = group_of(card, constraints, spread=spread)
        if group is not None and devices.occupied[card] is not None and bounds.get(card.node, count) >= count:
            groups[group].append(card)
    return groups


def _fill(
    geometry: Geometry,
    occupied: Mapping[Card, Occupancy],
    cards: Sequence[Card],
    profile: str,
    count: int,
    distinct: bool,
) -> tuple[tuple[Card, ...], Cost] | None:
    """The card of each of ``count`` slices within a group, and what they cost together."""
    there = {card: occupied[card] or frozenset() for card in cards}
    chosen: list[Card] = []
    costs: list[Cost] = []
    for _ in range(count):
        alike: dict[frozenset[Placement], Card] = {}
        for card in cards:
            if not (distinct and card in chosen):
                alike.setdefault(there[card], card)
        key = layouts.best_card(geometry, {card.key: state for state, card in alike.items()}, profile)
        if key is None:
            return None
        card = next(card for card in alike.values() if card.key == key)
        place = layouts.first_fit(geometry, there[card], profile)
        assert place is not None
        costs.append(layouts.loss(geometry, there[card], place))
        there[card] |= {place}
        chosen.append(card)
    return tuple(chosen), tuple(map(sum, zip(*costs, strict=True)))
