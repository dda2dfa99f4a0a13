"""Which MIG instances a card can be cut into: sizes, engines and placements per profile.

Sources. H100: `nvidia-smi mig -lgip` of an H100 SXM5 80GB, which rounds GiB to two places while NVML counts
in eighths (19.62 GiB is 20096 MiB). A100: NVML mock `a100_80gb` of NVIDIA/go-nvml. Profile ids and placements
are those of all parts with seven compute slices.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class MigProfile:
    """A GPU instance profile: it may begin at the memory slices `starts` and takes `size` of them."""

    name: str
    gi_id: int
    slices: int
    memory_mib: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    jpeg_engines: int
    ofa_engines: int
    starts: tuple[int, ...]
    size: int
    encoders: int = 0

    @property
    def resource(self) -> str:
        """The device plugin's name of it under strategy `mixed`, where `+` becomes `.`."""
        return "nvidia.com/mig-" + self.name.replace("+", ".")


MEMORY_SLICES = 8

ANY = (0, 1, 2, 3, 4, 5, 6)
EVEN = (0, 2, 4, 6)

TABLES: Mapping[str, tuple[MigProfile, ...]] = {
    # name, id, compute slices, MiB, SM, copy engines, decoders, JPEG, OFA, starts, memory slices
    "H100-80GB": (
        MigProfile("1g.10gb", 19, 1, 9984, 16, 1, 1, 1, 0, ANY, 1),
        MigProfile("1g.10gb+me", 20, 1, 9984, 16, 1, 1, 1, 1, ANY, 1),
        MigProfile("1g.20gb", 15, 1, 20096, 26, 1, 1, 1, 0, EVEN, 2),
        MigProfile("2g.20gb", 14, 2, 20096, 32, 2, 2, 2, 0, (0, 2, 4), 2),
        MigProfile("3g.40gb", 9, 3, 40448, 60, 3, 3, 3, 0, (0, 4), 4),
        MigProfile("4g.40gb", 5, 4, 40448, 64, 4, 4, 4, 0, (0,), 4),
        MigProfile("7g.80gb", 0, 7, 81152, 132, 8, 7, 7, 1, (0,), 8),
    ),
    "A100-80GB": (
        MigProfile("1g.10gb", 19, 1, 9856, 14, 1, 1, 0, 0, ANY, 1),
        MigProfile("1g.10gb+me", 20, 1, 9856, 14, 1, 1, 1, 1, ANY, 1),
        MigProfile("1g.20gb", 15, 1, 19968, 14, 1, 1, 0, 0, EVEN, 2),
        MigProfile("2g.20gb", 14, 2, 19968, 28, 2, 1, 0, 0, (0, 2, 4), 2),
        MigProfile("3g.40gb", 9, 3, 40192, 42, 3, 2, 0, 0, (0, 4), 4),
        MigProfile("4g.40gb", 5, 4, 40192, 56, 4, 2, 0, 0, (0,), 4),
        MigProfile("7g.80gb", 0, 7, 80384, 98, 7, 5, 1, 1, (0,), 8),
    ),
}


def profile(table: str, name: str) -> MigProfile:
    """The profile of that name; KeyError names the table and what it holds."""
    for candidate in TABLES[table]:
        if candidate.name == name:
            return candidate
    raise KeyError(f"{table} has no MIG profile {name}; it has {', '.join(p.name for p in TABLES[table])}")
