"""The cards and the NVLink clique that an allocation's claims are steered to, as its row keeps it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class DeviceAffinity:
    """False while nothing is asked of the cluster. ``cards`` are UUIDs by slice, "" where the scheduler chooses; None
    where it chooses for all. ``is_given_up``: the scheduler found no device on the cards, and is left to choose."""

    cards: tuple[str, ...] | None = None
    clique: str | None = None
    is_given_up: bool = False

    def __bool__(self) -> bool:
        return self != DeviceAffinity()

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        cards = stored.get("cards")
        return cls(None if cards is None else tuple(cards), stored.get("clique"), stored.get("given_up", False))

    def to_json(self) -> dict[str, Any]:
        return {
            **({} if self.cards is None else {"cards": list(self.cards)}),
            **({} if self.clique is None else {"clique": self.clique}),
            **({"given_up": True} if self.is_given_up else {}),
        }
