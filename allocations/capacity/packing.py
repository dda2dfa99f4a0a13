"""Which slices still fit on which cards, how many of them together, and on which cards they do the least harm. Pure.

Cards are plain facts: where they are, and which of their devices somebody has. By dynamic MIG a card is cut on demand,
so what fits depends on where its instances stand (``quotas.catalog.layouts``), not only on how much of it is left.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import floor

from quotas.catalog import layouts
from quotas.catalog.layouts import Placement
from quotas.catalog.mig_tables import Geometry

SAME_GPU, SAME_PCIE_ROOT, SAME_CLIQUE, DISTINCT_GPUS = "same_gpu", "same_pcie_root", "same_clique", "distinct_gpus"
"""Fields of ``allocations.domain.allocation_spec.Constraints``."""


@dataclass(frozen=True)
class Card:
    """A card that Kubernetes names. ``taken`` are its devices that claims have, one that serves several claims once for
    each; ``parts`` the MIG devices made on it beforehand, with their profiles. ``blocked`` cards of its node cannot
    have their share of CPU, memory or pods: of what is free there, that much cannot be used."""

    node: str
    name: str
    uuid: str
    pcie_root: str = ""
    clique: str = ""
    taken: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict, hash=False)
    blocked: Fraction = field(default=Fraction(0), hash=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.node, self.name


@dataclass(frozen=True)
class Piece:
    """One slice of an offering. ``replicas`` slices share a card."""

    kind: str
    profile: str = ""
    replicas: int = 1


Standing = tuple[Card, frozenset[Placement] | None, int]
"""A card, what stands on it where it is cut on demand, and how many cards are like it."""


class Cards:
    """The cards of one flavor, asked about one thing after another.

    Where they are told by a function, that is called when they are first asked for one by one. How much fits in all
    does not need them so: ``alike`` tells a card for each state that cards are in, and how many are. ``part_of`` tells
    which part of a card a profile is that was cut beforehand.
    """

    def __init__(
        self,
        cards: Iterable[Card] | Callable[[], Iterable[Card]],
        geometry: Geometry | None = None,
        standing: Mapping[Card, frozenset[Placement] | None] | None = None,
        alike: Callable[[], Iterable[tuple[Card, int]]] | None = None,
        part_of: Callable[[str], Fraction] = lambda profile: Fraction(1),
    ) -> None:
        self._told = cards
        self.geometry = geometry
        self._standing = standing
        self._told_alike = alike
        self._part_of = part_of
        self._rooms: dict[tuple[str, str, int, frozenset[Placement] | None], int] = {}

    @cached_property
    def cards(self) -> tuple[Card, ...]:
        """In the order of their names."""
        return tuple(sorted(self._told() if callable(self._told) else self._told, key=lambda card: card.key))

    @cached_property
    def occupied(self) -> Mapping[Card, frozenset[Placement] | None]:
        """What stands on each card that is cut on demand; None where somebody has the whole card."""
        if self.geometry is None or self._standing is not None:
            return self._standing or {}
        return {card: occupied(self.geometry, card) for card in self.cards}

    def only(self, clique: str) -> "Cards":
        cards = (card for card in self.cards if card.clique == clique)
        return Cards(cards, self.geometry, self._standing, part_of=self._part_of)

    def room(self, piece: Piece, card: Card, *, empty: bool = False) -> int:
        """How many more slices fit on the card; with ``empty`` how many would, did nobody have any of it."""
        there = frozenset() if empty or self.geometry is None else self.occupied[card]
        return self._room_beside(there, piece, card, empty=empty)

    def _room_beside(self, there: frozenset[Placement] | None, piece: Piece, card: Card, *, empty: bool) -> int:
        if piece.kind == "mig" and self.geometry is None:
            free = [profile for name, profile in card.parts.items() if empty or name not in card.taken]
            return free.count(piece.profile)
        if piece.kind != "mig" and card.parts and self.geometry is None:
            return 0
        if self.geometry is None:
            return max(0, piece.replicas - (0 if empty else len(card.taken)))
        known = (piece.kind, piece.profile, piece.replicas, there)
        if known not in self._rooms:
            self._rooms[known] = _room(self.geometry, there, piece)
        return self._rooms[known]

    def total(self, piece: Piece, *, empty: bool = False) -> int:
        """How many slices fit, each with its share of its node; with ``empty`` how many would, did nobody use any."""
        rooms: Counter[str] = Counter()
        for card, there, count in self._alike:
            room = self._room_beside(frozenset() if empty else there, piece, card, empty=empty)
            rooms[card.node if card.blocked else ""] += count * room
        bounds = {} if empty else self._bounds(piece, self._alike)
        return sum(min(room, bounds.get(node, room)) for node, room in rooms.items())

    def _bounds(self, piece: Piece, there: Iterable[Standing]) -> dict[str, int]:
        """By node of which cards are blocked: how many slices can have their share beside what is held there."""
        free: dict[str, Fraction] = {}
        for card, standing, count in there:
            if card.blocked:
                left = free.get(card.node, -card.blocked)
                free[card.node] = left + count * self._free_part(card, standing, piece)
        return {node: max(0, floor(left / self._part(piece))) for node, left in free.items()}

    def _part(self, piece: Piece) -> Fraction:
        """Part of a card that a slice is."""
        if piece.kind != "mig":
            return Fraction(1, piece.replicas)
        if self.geometry is None:
            return self._part_of(piece.profile)
        sizes = {one.name: one.size for one in self.geometry.profiles}
        return Fraction(sizes.get(piece.profile, self.geometry.memory), self.geometry.memory)

    def _free_part(self, card: Card, there: frozenset[Placement] | None, piece: Piece) -> Fraction:
        """Part of the card that nobody has."""
        if self.geometry is not None:
            taken = self.geometry.memory if there is None else sum(place.size for place in there)
            return Fraction(self.geometry.memory - taken, self.geometry.memory)
        if card.parts:
            free = (profile for name, profile in card.parts.items() if name not in card.taken)
            return sum(map(self._part_of, free), Fraction(0))
        return max(Fraction(0), 1 - Fraction(len(card.taken), piece.replicas))

    @cached_property
    def _alike(self) -> Sequence[Standing]:
        """A card for each state, what stands on it, and how many are in it: many cards are in few states."""
        if self._told_alike is not None:
            told = [(card, self._stands_on(card), count) for card, count in self._told_alike()]
        else:
            told = [(card, self.occupied.get(card, frozenset()), 1) for card in self.cards]
        found: dict[Hashable, Standing] = {}
        for card, there, count in told:
            state = (card.node if card.blocked else "", self._state(card, there))
            known = found.get(state, (card, there, 0))
            found[state] = (*known[:2], known[2] + count)
        return tuple(found.values())

    def _stands_on(self, card: Card) -> frozenset[Placement] | None:
        return occupied(self.geometry, card) if self.geometry else frozenset()

    def _state(self, card: Card, there: frozenset[Placement] | None) -> Hashable:
        """All that decides what fits on the card."""
        if self.geometry is not None:
            return there
        return len(card.taken) if not card.parts else (tuple(sorted(card.parts.items())), card.taken)

    def together(self, piece: Piece, constraints: Collection[str], *, spread: bool, empty: bool = False) -> int:
        """The most slices that one request can get at once, as its constraints have them stand to each other."""
        rooms: Counter[tuple[tuple[str, ...], str]] = Counter()
        for card in self.cards:
            if (group := group_of(card, constraints, spread=spread)) is not None:
                room = self.room(piece, card, empty=empty)
                rooms[group, card.node] += min(1, room) if DISTINCT_GPUS in constraints else room
        bounds = {} if empty else self._bounds(piece, self._blocked)
        most: Counter[tuple[str, ...]] = Counter()
        for (group, node), room in rooms.items():
            most[group] += min(room, bounds.get(node, room))
        return max(most.values(), default=0)

    @cached_property
    def _blocked(self) -> Sequence[Standing]:
        """The cards of nodes of which cards are blocked, one by one."""
        return [(card, self.occupied.get(card, frozenset()), 1) for card in self.cards if card.blocked]

    def steer(self, profile: str, count: int, constraints: Collection[str], *, spread: bool) -> tuple[Card, ...] | None:
        """The card of each MIG slice, so that the fewest large instances are lost; None when they do not fit.

        1. Cards are grouped as the request wants them together: by node, or by card, PCIe root or clique.
        2. In each group slice after slice goes to the card that loses least (``layouts.best_card``), where the
           scheduler will put it on the first placement that is free. A node where not all of them can have their share
           is left out.
        3. The group whose slices cost least is taken; equal ones: the fuller, then the first by name.
        """
        if self.geometry is None:
            return None
        bounds = self._bounds(Piece("mig", profile), self._blocked)
        groups: dict[tuple[str, ...], list[Card]] = defaultdict(list)
        for card in self.cards:
            group = group_of(card, constraints, spread=spread)
            if group is not None and self.occupied[card] is not None and bounds.get(card.node, count) >= count:
                groups[group].append(card)
        found: list[tuple[tuple[int, ...], int, tuple[str, ...], tuple[Card, ...]]] = []
        seen: set[tuple[tuple[Placement, ...], ...]] = set()
        for group, cards in sorted(groups.items()):
            state = tuple(sorted(tuple(sorted(self.occupied[card] or ())) for card in cards))
            if state in seen:  # another group just like it comes first by name
                continue
            seen.add(state)
            if chosen := _fill(self.geometry, self.occupied, cards, profile, count, DISTINCT_GPUS in constraints):
                fullness = sum(place.size for one in state for place in one)
                found.append((chosen[1], -fullness, group, chosen[0]))
        return min(found, key=lambda each: each[:3])[3] if found else None

    def expecting(self, coming: Iterable[tuple[str, str]]) -> "Cards":
        """The cards as they will be once the scheduler has placed slices under way, each (profile, card's UUID).

        One that finds no place there will be steered no more."""
        if self.geometry is None:
            return self
        there = dict(self.occupied)
        by_uuid = {card.uuid: card for card in self.cards}
        for profile, uuid in coming:
            card = by_uuid.get(uuid)
            state = there[card] if card else None
            if card and state is not None and (place := layouts.first_fit(self.geometry, state, profile)):
                there[card] = state | {place}
        return Cards(self.cards, self.geometry, there, part_of=self._part_of)

    def clique(self, piece: Piece, count: int, constraints: Collection[str], *, spread: bool) -> str:
        """The clique with the most room, of those that take the request now or else ever; "" when none would."""
        for empty in (False, True):
            rooms = {
                name: self.only(name).together(piece, constraints, spread=spread, empty=empty)
                for name in {card.clique for card in self.cards if card.clique}
            }
            fitting = [name for name in sorted(rooms) if rooms[name] >= count]
            if fitting:
                return max(fitting, key=lambda name: rooms[name])
        return ""


def card_of(device: str) -> str:
    """The card behind a DRA device's name: itself, or the one that a MIG device was cut from."""
    return device.partition("-mig-")[0]


def occupied(geometry: Geometry, card: Card) -> frozenset[Placement] | None:
    """The placements of the MIG devices that somebody has; None when it is the whole card, or may be."""
    places = [layouts.known_placement(geometry, device) for device in card.taken]
    return None if None in places else frozenset(place for place in places if place is not None)


def group_of(card: Card, constraints: Collection[str], *, spread: bool) -> tuple[str, ...] | None:
    """What one request's slices have in common with others of the card; None for a card that none may be on."""
    if SAME_CLIQUE in constraints and not card.clique:
        return None
    if SAME_PCIE_ROOT in constraints and not card.pcie_root:
        return None
    if SAME_GPU in constraints:
        return card.key
    if SAME_PCIE_ROOT in constraints:
        return card.node, card.pcie_root
    if not spread:
        return (card.node,)
    return (card.clique,) if SAME_CLIQUE in constraints else ()


def _room(geometry: Geometry, there: frozenset[Placement] | None, piece: Piece) -> int:
    if there is None:
        return 0
    if piece.kind != "mig":
        return 0 if there else 1
    return layouts.room(geometry, there).get(piece.profile, 0)


Cost = tuple[int, ...]


def _fill(
    geometry: Geometry,
    occupied: Mapping[Card, frozenset[Placement] | None],
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
