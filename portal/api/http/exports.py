"""Exports: CSV that no spreadsheet takes for formulas, and a format that the route chooses."""

import csv
import json
from collections.abc import Iterable
from io import StringIO
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from portal.core import csv_cells

CSV = "text/csv; charset=utf-8"


class RouteNegotiation(BaseContentNegotiation):
    """Content negotiation that leaves `?format=` to the route; problems are always JSON."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


def cell(value: object) -> str:
    """Return a cell as text: JSON for nested values, and never a spreadsheet formula."""
    if value is None:
        return ""
    return csv_cells.escaped(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def line(cells: Iterable[str]) -> str:
    """Return a line of CSV."""
    out = StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


def attachment(name: str) -> dict[str, str]:
    """Return the headers of a file that is not kept by caches."""
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
