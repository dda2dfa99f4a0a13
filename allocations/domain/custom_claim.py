"""A person's own DRA request as it is kept: the document, and beside it under ``built`` what was read from it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

BUILT = "built"


@dataclass(frozen=True)
class BuiltClaim:
    """What must not follow the fleet when it changes: the claim's spec, the units of its lease, the whole-GPU
    equivalents that it can take, and the part of a card's memory that it takes at least (None in older claims)."""

    spec: Mapping[str, Any]
    units: Mapping[str, int]
    gpus: Fraction
    card_part: Fraction | None = None

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        part = given.get("card_part")
        return cls(given["spec"], given["units"], Fraction(given["gpus"]), None if part is None else Fraction(part))

    def to_json(self) -> dict[str, Any]:
        part = {} if self.card_part is None else {"card_part": str(self.card_part)}
        return {"spec": dict(self.spec), "units": dict(self.units), "gpus": str(self.gpus), **part}


@dataclass(frozen=True)
class CustomClaim:
    """``document`` is as it was asked; ``built`` is None until it was read."""

    document: Mapping[str, Any]
    built: BuiltClaim | None = None

    @classmethod
    def of_column(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """The claim that a row keeps, if it has one."""
        return None if stored is None else cls.from_json(stored)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        built = given.get(BUILT)
        document = {name: value for name, value in given.items() if name != BUILT}
        return cls(document, None if built is None else BuiltClaim.from_json(built))

    def to_json(self) -> dict[str, Any]:
        return {**self.document, **({} if self.built is None else {BUILT: self.built.to_json()})}
