"""The tables of MIG GPUs beside what `nvidia-smi` printed on real ones (tests/unit/recorded, driver 580).

Recorded with MIG off and no setting changed; serial number, UUID and PDI are blanked.
"""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quotas.catalog import mig_tables
from quotas.catalog.mig_tables import Geometry

RECORDED = Path(__file__).parent / "recorded"
GPUS = pytest.mark.parametrize(("folder", "table"), [("h100", "H100-80GB"), ("h200", "H200-141GB")])
PROFILE = re.compile(
    r"\|\s+0\s+MIG (?P<name>\S+)\s+(?P<id>\d+)\s+\d+/(?P<most>\d+)\s+(?P<gib>[\d.]+)\s+No"
    r"\s+(?P<sm>\d+)\s+(?P<dec>\d+)\s+(?P<enc>\d+)\s+\|\n"
    r"\|\s+(?P<ce>\d+)\s+(?P<jpeg>\d+)\s+(?P<ofa>\d+)\s+\|"
)
PLACEMENTS = re.compile(r"Profile ID +(?P<id>\d+) Placements? *: \{(?P<starts>[\d,]+)\}:(?P<size>\d+)")


def printed(geometry: Geometry) -> set[tuple[object, ...]]:
    """Return the profiles as `nvidia-smi mig -lgip` prints them, memory in GiB with two places cut."""
    return {
        (
            *(one.name, one.gi_id, one.max_instances, one.memory_mib * 100 // 1024, one.multiprocessors),
            *(one.decoders, one.encoders, one.copy_engines, one.jpeg_engines, one.ofa_engines),
        )
        for one in geometry.profiles
    }


@GPUS
def test_profiles_are_those_a_real_gpu_lists(folder: str, table: str) -> None:
    text = (RECORDED / folder / "mig-lgip.txt").read_text()
    found = {
        (
            *(m["name"], int(m["id"]), int(m["most"]), int(m["gib"].replace(".", "")), int(m["sm"])),
            *(int(m[engine]) for engine in ("dec", "enc", "ce", "jpeg", "ofa")),
        )
        for m in PROFILE.finditer(text)
    }
    assert found == printed(mig_tables.TABLES[table])


@GPUS
def test_placements_are_those_a_real_gpu_lists(folder: str, table: str) -> None:
    text = (RECORDED / folder / "mig-lgipp.txt").read_text()
    found = {int(m["id"]): (tuple(map(int, m["starts"].split(","))), int(m["size"])) for m in PLACEMENTS.finditer(text)}
    assert found == {one.gi_id: (one.starts, one.size) for one in mig_tables.TABLES[table].profiles}


@GPUS
def test_the_largest_instance_has_less_memory_than_the_gpu(folder: str, table: str) -> None:
    gpu = ElementTree.parse(RECORDED / folder / "query.xml").find("gpu")
    assert gpu is not None
    total_mib = int((gpu.findtext("fb_memory_usage/total") or "").removesuffix(" MiB"))
    largest = max(one.memory_mib for one in mig_tables.TABLES[table].profiles)
    assert largest < total_mib < 1.02 * largest
