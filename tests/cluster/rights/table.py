"""Reads the tables of permissions and fields from the YAML files beside this module."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
FILES = ("role", "objects", "pods", "containers", "volumes", "workloads", "services", "shares")
VERDICTS = ("allowed", "bounded", "refused")


@dataclass(frozen=True)
class Entry:
    """``names`` of permissions or fields. ``by`` is what bounds or refuses them, ``tests`` where that is shown:
    sentences of attacks, and node ids of tests.
    """

    names: tuple[str, ...]
    verdict: str
    whole: bool
    by: tuple[str, ...]
    attacks: tuple[str, ...]
    tests: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Table:
    file: str
    title: str
    text: str
    entries: tuple[Entry, ...]


def tables() -> list[Table]:
    return [_table(name) for name in FILES]


def entries() -> Iterator[Entry]:
    for table in tables():
        yield from table.entries


def rights() -> set[str]:
    """Return the permissions that have an entry, for example ``patch deployments.apps/scale``."""
    return {name for entry in _table("role").entries for name in entry.names}


def fields() -> dict[str, bool]:
    """Return the address of each field that has an entry → whether the entry covers everything below."""
    return {
        name: entry.whole
        for table in tables()
        if table.file != "role"
        for entry in table.entries
        for name in entry.names
    }


def _table(name: str) -> Table:
    read = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return Table(
        name, read["title"], " ".join(read.get("text", "").split()), tuple(_entry(row) for row in read["entries"])
    )


def _entry(row: dict[str, Any]) -> Entry:
    verbs, kinds = row.pop("verbs", ()), row.pop("resources", ())
    names = row.pop("fields", ()) or [f"{verb} {kind}" for kind in kinds for verb in verbs]
    entry = Entry(
        names=tuple(names),
        verdict=row.pop("verdict"),
        whole=row.pop("whole", False),
        by=_list(row.pop("by", ())),
        attacks=_list(row.pop("attack", ())),
        tests=_list(row.pop("test", ())),
        why=" ".join(row.pop("why", "").split()),
    )
    if row:
        raise ValueError(f"{names}: {', '.join(row)} is nothing that an entry has")
    return entry


def _list(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
