"""Reads the size of etcd from its metrics."""

import re
from dataclasses import dataclass
from pathlib import Path

from deploy.local.home import REPOSITORY, Home
from tests.support.cluster import etcd_client

GUIDE = REPOSITORY / "docs" / "reference" / "guards.md"
BOUND = re.compile(r"^\| \*\*all of a project\*\* \|.*\*\*([\d,]+) MiB\*\* \|$", re.MULTILINE)
MIB = 1024 * 1024


@dataclass(frozen=True)
class Size:
    """In bytes: the database file, its part in use after the last compaction, and the size at which etcd refuses
    writes.
    """

    total: float
    in_use: float
    quota: float


class Etcd:
    """The metrics of a local cluster's etcd, read with the API server's certificate."""

    def __init__(self, home: Home) -> None:
        self._url = f"https://127.0.0.1:{home.ports['etcd']}/metrics"
        self._pool = etcd_client.pool(home, timeout_s=10)

    def size(self) -> Size:
        return parse(self._pool.request("GET", self._url).data.decode())


def parse(metrics: str) -> Size:
    def value(name: str) -> float:
        found = re.search(rf"^{name} (\S+)$", metrics, re.MULTILINE)
        assert found, f"etcd does not tell {name}"
        return float(found[1])

    return Size(
        value("etcd_mvcc_db_total_size_in_bytes"),
        value("etcd_mvcc_db_total_size_in_use_in_bytes"),
        value("etcd_server_quota_backend_bytes"),
    )


def bound(guide: Path = GUIDE) -> int:
    """Return the bytes that a project can store, as the guide computes them."""
    found = BOUND.search(guide.read_text(encoding="utf-8"))
    assert found, f"{guide} does not tell what a project can store"
    return int(found[1].replace(",", "")) * MIB
