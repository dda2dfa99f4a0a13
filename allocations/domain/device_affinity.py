"""The GPUs and the NVLink clique that the claims of an allocation select, as its row stores them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

GPU_UUIDS = "cards"
"""The key of the GPUs in the stored affinity."""


@dataclass(frozen=True)
class DeviceAffinity:
    """The devices that an allocation's claims select; false if nothing was chosen yet.

    ``gpu_uuids`` are by slice: "" for a slice for which the scheduler chooses, None if it chooses for all slices.
    ``is_abandoned``: the scheduler found no device on the chosen GPUs, and may choose any.
    """

    gpu_uuids: tuple[str, ...] | None = None
    clique: str | None = None
    is_abandoned: bool = False

    def __bool__(self) -> bool:
        return self != DeviceAffinity()

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        uuids = stored.get(GPU_UUIDS)
        return cls(None if uuids is None else tuple(uuids), stored.get("clique"), stored.get("given_up", False))

    def to_json(self) -> dict[str, Any]:
        return {
            **({} if self.gpu_uuids is None else {GPU_UUIDS: list(self.gpu_uuids)}),
            **({} if self.clique is None else {"clique": self.clique}),
            **({"given_up": True} if self.is_abandoned else {}),
        }
