"""A custom DRA claim as it is stored: its document, and under ``built`` what was computed from it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

BUILT = "built"
UNITS = "units"
UNITS_PATH = f"{BUILT}__{UNITS}"
"""The units of a stored claim, as a query reads them."""


@dataclass(frozen=True)
class BuiltClaim:
    """What was computed from a claim when it was requested, and stays when the fleet changes.

    ``spec`` is of its ResourceClaim. ``units`` are the units that its lease reserves, by resource. ``gpus`` are the
    whole-GPU equivalents that it can use at most. ``memory_part`` is the GPU memory that it uses at least (None
    in older claims).
    """

    spec: Mapping[str, Any]
    units: Mapping[str, int]
    gpus: Fraction
    memory_part: Fraction | None = None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        part = document.get("card_part")
        gpus = Fraction(document["gpus"])
        return cls(document["spec"], document[UNITS], gpus, None if part is None else Fraction(part))

    def to_json(self) -> dict[str, Any]:
        part = {} if self.memory_part is None else {"card_part": str(self.memory_part)}
        return {"spec": dict(self.spec), UNITS: dict(self.units), "gpus": str(self.gpus), **part}


@dataclass(frozen=True)
class CustomClaim:
    """A custom claim. ``document`` is as the person wrote it; ``built`` is None until it was parsed."""

    document: Mapping[str, Any]
    built: BuiltClaim | None = None

    @property
    def sharing_strategies(self) -> set[str]:
        """The strategies by which pods share its devices."""
        configs = [config["sharing"] for config in self.document.get("config", ()) if config.get("sharing")]
        return {str(config["strategy"]) for config in configs}

    @property
    def requests_shares(self) -> bool:
        """Whether it can get a share of a device."""
        return any(choice.get("capacity") for choice in self._choices())

    @property
    def requests_only_gpus(self) -> bool:
        """Whether every device that it can get is a GPU, not a MIG instance."""
        return all(choice.get("device", "gpu") == "gpu" for choice in self._choices())

    def _choices(self) -> list[Mapping[str, Any]]:
        requests = self.document.get("requests", ())
        return [choice for request in requests for choice in (request.get("alternatives") or [request])]

    @classmethod
    def of_column(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """Return the claim that a row stores; None if it has none."""
        return None if stored is None else cls.from_json(stored)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        built = stored.get(BUILT)
        document = {name: value for name, value in stored.items() if name != BUILT}
        return cls(document, None if built is None else BuiltClaim.from_json(built))

    def to_json(self) -> dict[str, Any]:
        return {**self.document, **({} if self.built is None else {BUILT: self.built.to_json()})}
