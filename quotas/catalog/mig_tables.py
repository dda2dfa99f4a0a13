"""MIG profiles of each GPU with sizes, engines and placements, as data with its source. Pure.

A GPU has compute slices and memory slices. A profile takes some of both, and may start at certain memory slices.
Memory is in MiB: NVML counts in eighths of a GiB, which `nvidia-smi mig -lgip` prints with two places (19.62 GiB is
20096 MiB).

Sources: `NVML` is NVIDIA/go-nvml, pkg/nvml/mock/gpus; `lgip` is output of `nvidia-smi mig -lgip`, in the issue named
or of a GPU named, which tests/unit/recorded keeps.
GPUs of 7 compute slices share profile ids and placements: those of NVML's A100 mock, confirmed for Hopper by the DRA
driver's log.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Profile:
    """A GPU instance profile: it may start at the memory slices `starts` and takes `size` of them.

    `gi_id` is NVML's id; at most `max_instances` fit a GPU. Engines are counts, None without a source.
    """

    name: str
    gi_id: int
    compute: int
    memory_mib: int
    multiprocessors: int
    starts: tuple[int, ...]
    size: int
    max_instances: int
    copy_engines: int | None = None
    decoders: int | None = None
    jpeg_engines: int | None = None
    ofa_engines: int | None = None
    encoders: int | None = 0

    @property
    def resource(self) -> str:
        """Return the device plugin's resource under strategy `mixed`, where `+` becomes `.`: NVIDIA's
        internal/rm/rm.go.
        """
        return "nvidia.com/mig-" + self.name.replace("+", ".")

    @property
    def has_media(self) -> bool:
        """Return whether it takes the GPU's media engines, of which there is one set: `+me`, `+me.all`."""
        return "+me" in self.name


@dataclass(frozen=True)
class Geometry:
    """The geometry of one product. `estimated` names the profiles with a number scaled from the others, without a
    source.
    """

    name: str
    compute: int
    memory: int
    profiles: tuple[Profile, ...] = field(hash=False)
    source: str = ""
    estimated: tuple[str, ...] = ()

    def profile(self, name: str) -> Profile:
        """Return the profile of that name; a KeyError names the GPU and its profiles."""
        for candidate in self.profiles:
            if candidate.name == name:
                return candidate
        raise KeyError(f"{self.name} has no MIG profile {name}; it has {', '.join(p.name for p in self.profiles)}")


# Where an instance may begin on 8 memory slices. The eighth is no place for a single slice: 8 of memory, 7 of compute.
ANY, EVEN, TWOS, HALVES, FIRST = (0, 1, 2, 3, 4, 5, 6), (0, 2, 4, 6), (0, 2, 4), (0, 4), (0,)
# And on 4.
QUARTERS, PAIRS = (0, 1, 2, 3), (0, 2)

TABLES: Mapping[str, Geometry] = {
    geometry.name: geometry
    for geometry in (
        # profile: name, id, compute slices, MiB, multiprocessors, starts, memory slices, most,
        # copy engines, decoders, JPEG, OFA
        Geometry(
            "A30",
            4,
            4,
            (
                Profile("1g.6gb", 14, 1, 5836, 14, QUARTERS, 1, 4, 1, 0, 0, 0),
                Profile("1g.6gb+me", 21, 1, 5836, 14, QUARTERS, 1, 1, 1, 1, 1, 1),
                Profile("2g.12gb", 5, 2, 11672, 28, PAIRS, 2, 2, 2, 2, 0, 0),
                Profile("2g.12gb+me", 6, 2, 11672, 28, PAIRS, 2, 1, 2, 2, 1, 1),
                Profile("4g.24gb", 0, 4, 23344, 56, FIRST, 4, 1, 4, 4, 1, 1),
            ),
            source="NVML a30; ids and engines of NVIDIA's MIG user guide",
        ),
        Geometry(
            "A100-40GB",
            7,
            8,
            (
                Profile("1g.5gb", 19, 1, 4864, 14, ANY, 1, 7, 1, 1, 0, 0),
                Profile("1g.5gb+me", 20, 1, 4864, 14, ANY, 1, 1, 1, 1, 1, 1),
                Profile("1g.10gb", 15, 1, 9856, 14, EVEN, 2, 4, 1, 1, 0, 0),
                Profile("2g.10gb", 14, 2, 9856, 28, TWOS, 2, 3, 2, 1, 0, 0),
                Profile("3g.20gb", 9, 3, 19968, 42, HALVES, 4, 2, 3, 2, 0, 0),
                Profile("4g.20gb", 5, 4, 19968, 56, FIRST, 4, 1, 4, 2, 0, 0),
                Profile("7g.40gb", 0, 7, 40192, 98, FIRST, 8, 1, 7, 5, 1, 1),
            ),
            source="NVML a100 (40 GB)",
        ),
        Geometry(
            "A100-80GB",
            7,
            8,
            (
                Profile("1g.10gb", 19, 1, 9856, 14, ANY, 1, 7, 1, 1, 0, 0),
                Profile("1g.10gb+me", 20, 1, 9856, 14, ANY, 1, 1, 1, 1, 1, 1),
                Profile("1g.20gb", 15, 1, 19968, 14, EVEN, 2, 4, 1, 1, 0, 0),
                Profile("2g.20gb", 14, 2, 19968, 28, TWOS, 2, 3, 2, 1, 0, 0),
                Profile("3g.40gb", 9, 3, 40192, 42, HALVES, 4, 2, 3, 2, 0, 0),
                Profile("4g.40gb", 5, 4, 40192, 56, FIRST, 4, 1, 4, 2, 0, 0),
                Profile("7g.80gb", 0, 7, 80384, 98, FIRST, 8, 1, 7, 5, 1, 1),
            ),
            source="NVML a100_80gb",
        ),
        Geometry(
            "H100-80GB",
            7,
            8,
            (
                Profile("1g.10gb", 19, 1, 9984, 16, ANY, 1, 7, 1, 1, 1, 0),
                Profile("1g.10gb+me", 20, 1, 9984, 16, ANY, 1, 1, 1, 1, 1, 1),
                Profile("1g.20gb", 15, 1, 20096, 26, EVEN, 2, 4, 1, 1, 1, 0),
                Profile("2g.20gb", 14, 2, 20096, 32, TWOS, 2, 3, 2, 2, 2, 0),
                Profile("3g.40gb", 9, 3, 40448, 60, HALVES, 4, 2, 3, 3, 3, 0),
                Profile("4g.40gb", 5, 4, 40448, 64, FIRST, 4, 1, 4, 4, 4, 0),
                Profile("7g.80gb", 0, 7, 81152, 132, FIRST, 8, 1, 8, 7, 7, 1),
            ),
            source="lgip of an H100 SXM5 80GB, driver 580; PCIe boards have 114 multiprocessors in all",
        ),
        Geometry(
            "H100-94GB",
            7,
            8,
            (
                Profile("1g.12gb", 19, 1, 11008, 16, ANY, 1, 7, 1, 1, 1, 0),
                Profile("1g.12gb+me", 20, 1, 11008, 16, ANY, 1, 1, 1, 1, 1, 1),
                Profile("1g.24gb", 15, 1, 22144, 26, EVEN, 2, 4, 1, 1, 1, 0),
                Profile("2g.24gb", 14, 2, 22144, 32, TWOS, 2, 3, 2, 2, 2, 0),
                Profile("3g.47gb", 9, 3, 47488, 60, HALVES, 4, 2, 3, 3, 3, 0),
                Profile("4g.47gb", 5, 4, 47488, 64, FIRST, 4, 1, 4, 4, 4, 0),
                Profile("7g.94gb", 0, 7, 95360, 132, FIRST, 8, 1, 8, 7, 7, 1),
            ),
            source="lgip in gpu-operator#903, mig-parted#101",
            estimated=(
                "3g.47gb",
                "4g.47gb",
                "7g.94gb",
            ),
        ),
        Geometry(
            "H200-141GB",
            7,
            8,
            (
                Profile("1g.18gb", 19, 1, 16384, 16, ANY, 1, 7, 1, 1, 1, 0),
                Profile("1g.18gb+me", 20, 1, 16384, 16, ANY, 1, 1, 1, 1, 1, 1),
                Profile("1g.35gb", 15, 1, 33280, 26, EVEN, 2, 4, 1, 1, 1, 0),
                Profile("2g.35gb", 14, 2, 33280, 32, TWOS, 2, 3, 2, 2, 2, 0),
                Profile("3g.71gb", 9, 3, 71424, 60, HALVES, 4, 2, 3, 3, 3, 0),
                Profile("4g.71gb", 5, 4, 71424, 64, FIRST, 4, 1, 4, 4, 4, 0),
                Profile("7g.141gb", 0, 7, 143360, 132, FIRST, 8, 1, 8, 7, 7, 1),
            ),
            source="lgip of an H200 141GB, driver 580; mig-parted#120 has 0.25 GiB less from 1g.35gb on",
        ),
        Geometry(
            "B200-180GB",
            7,
            8,
            (
                Profile("1g.23gb", 19, 1, 22528, 18, ANY, 1, 7),
                Profile("1g.23gb+me", 20, 1, 22528, 18, ANY, 1, 1),
                Profile("1g.45gb", 15, 1, 45312, 30, EVEN, 2, 4),
                Profile("2g.45gb", 14, 2, 45312, 36, TWOS, 2, 3),
                Profile("3g.90gb", 9, 3, 91136, 70, HALVES, 4, 2),
                Profile("4g.90gb", 5, 4, 91136, 72, FIRST, 4, 1),
                Profile("7g.180gb", 0, 7, 182272, 148, FIRST, 8, 1),
            ),
            source="lgip in gpu-operator#1242, #1351; older firmware has 20.50 GiB in 1g.23gb",
            estimated=(
                "3g.90gb",
                "4g.90gb",
                "7g.180gb",
            ),
        ),
        Geometry(
            "GB200-186GB",
            7,
            8,
            (
                Profile("1g.23gb", 19, 1, 22528, 18, ANY, 1, 7),
                Profile("1g.23gb+me", 20, 1, 22528, 18, ANY, 1, 1),
                Profile("1g.47gb", 15, 1, 46592, 32, EVEN, 2, 4),
                Profile("2g.47gb", 14, 2, 46592, 38, TWOS, 2, 3),
                Profile("3g.93gb", 9, 3, 94208, 72, HALVES, 4, 2),
                Profile("4g.93gb", 5, 4, 94208, 76, FIRST, 4, 1),
                Profile("7g.186gb", 0, 7, 188416, 152, FIRST, 8, 1),
            ),
            source="lgip in mig-parted#227; some boards name 1g.24gb, 3g.95gb, 4g.95gb, 7g.189gb (gpu-operator#1303)",
            estimated=(
                "3g.93gb",
                "4g.93gb",
                "7g.186gb",
            ),
        ),
        Geometry(
            "RTX-PRO-6000-96GB",
            4,
            4,
            (
                Profile("1g.24gb", 14, 1, 24192, 46, QUARTERS, 1, 4, encoders=None),
                Profile("1g.24gb+me", 21, 1, 24192, 46, QUARTERS, 1, 1, encoders=None),
                Profile("1g.24gb+gfx", 47, 1, 24192, 46, QUARTERS, 1, 4, encoders=None),
                Profile("1g.24gb+me.all", 65, 1, 24192, 46, QUARTERS, 1, 1, encoders=None),
                Profile("1g.24gb-me", 67, 1, 24192, 46, QUARTERS, 1, 4, encoders=None),
                Profile("2g.48gb", 5, 2, 48384, 92, PAIRS, 2, 2, encoders=None),
                Profile("2g.48gb+gfx", 35, 2, 48384, 92, PAIRS, 2, 2, encoders=None),
                Profile("2g.48gb+me.all", 64, 2, 48384, 92, PAIRS, 2, 1, encoders=None),
                Profile("2g.48gb-me", 66, 2, 48384, 92, PAIRS, 2, 2, encoders=None),
                Profile("4g.96gb", 0, 4, 96768, 188, FIRST, 4, 1, encoders=None),
                Profile("4g.96gb+gfx", 32, 4, 96768, 188, FIRST, 4, 1, encoders=None),
            ),
            source="container-engine-accelerators#564, mig-parted config-default.yaml; placements as A30 (unverified)",
            estimated=(
                "2g.48gb",
                "2g.48gb+gfx",
                "2g.48gb+me.all",
                "2g.48gb-me",
                "4g.96gb",
                "4g.96gb+gfx",
                "1g.24gb-me",
            ),
        ),
    )
}

# The words of a product (as label or as productName) and its least memory in MiB, the first match wins.
_PRODUCTS: tuple[tuple[frozenset[str], int, str], ...] = (
    (frozenset({"GB200"}), 0, "GB200-186GB"),
    (frozenset({"B200"}), 0, "B200-180GB"),
    (frozenset({"H200"}), 0, "H200-141GB"),
    (frozenset({"H100"}), 90_000, "H100-94GB"),
    (frozenset({"H100"}), 0, "H100-80GB"),
    (frozenset({"A100"}), 60_000, "A100-80GB"),
    (frozenset({"A100"}), 0, "A100-40GB"),
    (frozenset({"A30"}), 0, "A30"),
    (frozenset({"RTX", "PRO", "6000", "BLACKWELL"}), 0, "RTX-PRO-6000-96GB"),
)
_H100_NVL_MIB = 94 * 1024
_MEMORY = re.compile(r"(\d+)GB")


def geometry_of(product: str, memory_mib: int = 0) -> Geometry | None:
    """Return the table of a product, given as its label (`NVIDIA-H100-80GB-HBM3`) or its productName; None without one.

    Between two sizes of one model the memory in the name decides, else `memory_mib`, the GPU's.
    """
    gpu = product.upper().partition("-MIG-")[0]  # by strategy `single` the label names the profile as well
    words = set(re.split(r"[^A-Z0-9]+", gpu))
    named = next((int(match[1]) * 1024 for word in words if (match := _MEMORY.fullmatch(word))), 0)
    memory = named or memory_mib or (_H100_NVL_MIB if "NVL" in words else 0)
    return next((TABLES[key] for marks, least, key in _PRODUCTS if marks <= words and memory >= least), None)
