"""A table inside a guide, between two marks, with what tests observed."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cluster import slices

HEAD = (
    "| slice | path | request | Kubernetes objects | device given | active after | tenant's pod on |\n"
    + "|---" * 7
    + "|\n"
)


@dataclass(frozen=True)
class Observation:
    """Observations of one row: the request's body, objects by kind, devices or count, seconds, the pod's node."""

    row: slices.Row
    body: dict[str, Any]
    objects: list[str]
    device: str
    seconds: float
    node: str


def write_table(guide: Path, observations: Sequence[Observation]) -> None:
    """Write the table of slices between its marks."""
    rows = [
        f"| {one.row.title} | {one.row.path} | `{json.dumps(one.body)}` | {', '.join(one.objects)} | {one.device} "
        f"| {one.seconds:.1f} s | {one.node} |\n"
        for one in observations
    ]
    write_lines(guide, "slices", [HEAD, *rows])


def write_lines(guide: Path, name: str, lines: Sequence[str]) -> None:
    """Replace the text between the marks of that name; raise ValueError if they are missing."""
    text, begin, end = guide.read_text(), f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    if begin not in text or end not in text:
        raise ValueError(f"{guide} lacks the marks {begin.strip()} and {end}")
    written = re.sub(
        f"{re.escape(begin)}.*{re.escape(end)}", lambda _: f"{begin}{''.join(lines)}{end}", text, flags=re.S
    )
    guide.write_text(written)
