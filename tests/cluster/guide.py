"""A table inside a guide, between two marks, written from what tests have seen."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cluster.test_every_slice import Told

BEGIN, END = "<!-- slices: begin -->\n", "<!-- slices: end -->"
HEAD = (
    "| slice | path | request | Kubernetes objects | device given | active after | tenant's pod on |\n"
    + "|---" * 7
    + "|\n"
)


def write_table(guide: Path, told: "Sequence[Told]") -> None:
    """Replace what stands between the marks; ValueError where they are missing."""
    text = guide.read_text()
    if BEGIN not in text or END not in text:
        raise ValueError(f"{guide} lacks the marks {BEGIN.strip()} and {END}")
    rows = "".join(
        f"| {one.row.title} | {one.row.path} | `{json.dumps(one.body)}` | {', '.join(one.objects)} | {one.device} "
        f"| {one.seconds:.1f} s | {one.node} |\n"
        for one in told
    )
    written = re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}{HEAD}{rows}{END}", text, flags=re.S)
    guide.write_text(written)
