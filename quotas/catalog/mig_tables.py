"""MIG profiles of each GPU with sizes, engines and placements, as data with its source. Pure.

Memory is in MiB: NVML counts in eighths of a GiB, which `nvidia-smi mig -lgip` prints with two places (19.62 GiB is
20096 MiB).

Sources: `NVML` is NVIDIA/go-nvml, pkg/nvml/mock/gpus; `lgip` is output of `nvidia-smi mig -lgip`, in the issue named
or of a GPU named, which tests/unit/recorded keeps; `mig-parted` is NVIDIA/mig-parted v0.15.0,
deployments/systemd/config-default.yaml, which names the profiles of each GPU and how many fit.
GPUs of 7 compute slices share profile ids and placements: those of NVML's A100 mock, confirmed for Hopper by the DRA
driver's log.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from quotas.catalog.mig_profiles import Geometry, Profile

__all__ = ["TABLES", "Geometry", "Profile", "geometry_of", "tables_of"]

# Where an instance may begin on 8 memory slices. The eighth is no place for a single slice: 8 of memory, 7 of compute.
ANY, EVEN, TWOS, HALVES, FIRST = (0, 1, 2, 3, 4, 5, 6), (0, 2, 4, 6), (0, 2, 4), (0, 4), (0,)
# And on 4.
QUARTERS, PAIRS = (0, 1, 2, 3), (0, 2)

_MEASURED: Mapping[str, Geometry] = {
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


def _twin(of: str, name: str, profiles: str, *, source: str, multiprocessors: int = 0) -> Geometry:
    """Return the table of a GPU that is divided as another one, with other names: memory is scaled by what the names
    say, and multiprocessors by their number, that of the other GPU if it is not given.
    """
    known = _MEASURED[of]
    whole, names = known.profiles[-1], profiles.split()
    memory = Fraction(_named_gb(names[-1]), _named_gb(whole.name))
    scale = Fraction(multiprocessors or whole.multiprocessors, whole.multiprocessors)
    return Geometry(
        name,
        known.compute,
        known.memory,
        tuple(
            replace(
                one,
                name=other,
                memory_mib=int(one.memory_mib * memory),
                multiprocessors=int(one.multiprocessors * scale),
            )
            for one, other in zip(known.profiles, names, strict=True)
        ),
        source=f"{source}; the rest as {of}",
        estimated=tuple(names),
    )


def _named_gb(profile: str) -> int:
    return int(re.split(r"[.g]", profile)[2])


_SLICES_OF_96GB = "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb"
_SLICES_OF_144GB = "1g.18gb 1g.18gb+me 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb"
_SLICES_OF_189GB = "1g.24gb 1g.24gb+me 1g.47gb 2g.47gb 3g.95gb 4g.95gb 7g.189gb"
_SLICES_OF_269GB = "1g.34gb 1g.34gb+me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb"
_SLICES_OF_278GB = "1g.35gb 1g.35gb+me 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb"
_TWINS = (
    _twin("H100-94GB", "GH200-96GB", _SLICES_OF_96GB, source="mig-parted: GH200, H100-96GB"),
    _twin("H100-94GB", "H20-96GB", _SLICES_OF_96GB, source="mig-parted: H20", multiprocessors=78),
    _twin("H200-141GB", "GH200-144G-HBM3e", _SLICES_OF_144GB, source="mig-parted: GH200 144G HBM3e"),
    _twin("GB200-186GB", "GB200-189GB", _SLICES_OF_189GB, source="lgip in gpu-operator#1303"),
    _twin("B200-180GB", "B300-269GB", _SLICES_OF_269GB, source="mig-parted: B300"),
    _twin("GB200-186GB", "GB300-278GB", _SLICES_OF_278GB, source="mig-parted: GB300"),
)

TABLES: Mapping[str, Geometry] = {**_MEASURED, **{geometry.name: geometry for geometry in _TWINS}}

# The words of a product (as label or as productName), its least memory in MiB (0 if it is not known), and its tables,
# the likelier first. The first product that matches counts; one without a table is known to be divided in another way.
_PRODUCTS: tuple[tuple[frozenset[str], int, tuple[str, ...]], ...] = (
    (frozenset({"GB300", "WS"}), 0, ()),
    (frozenset({"GB300"}), 0, ("GB300-278GB",)),
    (frozenset({"B300"}), 0, ("B300-269GB",)),
    (frozenset({"GB200"}), 0, ("GB200-186GB", "GB200-189GB")),
    (frozenset({"B200"}), 0, ("B200-180GB",)),
    (frozenset({"GH200", "144G"}), 0, ("GH200-144G-HBM3e",)),
    (frozenset({"GH200"}), 120_000, ("GH200-144G-HBM3e",)),
    (frozenset({"GH200"}), 1, ("GH200-96GB",)),
    (frozenset({"GH200"}), 0, ("GH200-96GB", "GH200-144G-HBM3e")),
    (frozenset({"H200"}), 0, ("H200-141GB",)),
    (frozenset({"H20", "3E"}), 0, ()),
    (frozenset({"H20"}), 120_000, ()),
    (frozenset({"H20"}), 0, ("H20-96GB",)),
    # The editions for China have the same GPU, with slower links: mig-parted lists them together.
    *(
        (frozenset({gpu}), least, tables)
        for gpu in ("H100", "H800")
        for least, tables in (
            (90_000, ("H100-94GB", "GH200-96GB")),
            (1, ("H100-80GB",)),
            (0, ("H100-80GB", "H100-94GB", "GH200-96GB")),
        )
    ),
    *(
        (frozenset({gpu}), least, tables)
        for gpu in ("A100", "A800")
        for least, tables in ((60_000, ("A100-80GB",)), (1, ("A100-40GB",)), (0, ("A100-40GB", "A100-80GB")))
    ),
    (frozenset({"A30"}), 0, ("A30",)),
    (frozenset({"RTX", "PRO", "6000", "BLACKWELL"}), 0, ("RTX-PRO-6000-96GB",)),
)
_H100_NVL_MIB = 94 * 1024
_MEMORY = re.compile(r"(\d+)GB")
_NAMES_CPU_MEMORY = "GH200"  # NVIDIA-GH200-480GB


def tables_of(product: str, memory_mib: int = 0) -> tuple[Geometry, ...]:
    """Return the tables of a product, given as its label (`NVIDIA-H100-80GB-HBM3`) or its productName, the likeliest
    first.

    Between two sizes of one model the memory in the name decides, else `memory_mib`, the GPU's.
    """
    gpu = product.upper().partition("-MIG-")[0]  # by strategy `single` the label names the profile as well
    words = set(re.split(r"[^A-Z0-9]+", gpu))
    named = next((int(match[1]) * 1024 for word in words if (match := _MEMORY.fullmatch(word))), 0)
    memory = (0 if _NAMES_CPU_MEMORY in words else named) or memory_mib or (_H100_NVL_MIB if "NVL" in words else 0)
    found = next((keys for marks, least, keys in _PRODUCTS if marks <= words and memory >= least), ())
    return tuple(TABLES[key] for key in found)


def geometry_of(product: str, memory_mib: int = 0, profile: str = "") -> Geometry | None:
    """Return the table of a product, of several the first that has the profile; None if there is none."""
    tables = tables_of(product, memory_mib)
    return next((one for one in tables if not profile or any(p.name == profile for p in one.profiles)), None)
