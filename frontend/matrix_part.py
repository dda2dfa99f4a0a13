"""The part of the matrix of limits that a page shows: what a filter leaves, one page of it, and every open cell."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import HttpRequest

from allocations.limits.matrix import Matrix, narrowed, with_devices_first
from frontend.limit_cell_form import kind_of
from frontend.paged import Paged, paged

ROWS, COLUMNS = 50, 16
"""So many teams and departments, and so many pools, are on one page."""
LARGE = (10, 10)
"""A matrix of more rows or columns than this has a filter."""
PARAMETERS = ("team", "pool", "rows", "columns", "empty")


@dataclass(frozen=True)
class MatrixPart:
    """``chosen`` are the parameters of the address that lead to this part; ``is_large``: the whole matrix is worth a
    filter; ``folded``: how many pools without devices are left out.
    """

    matrix: Matrix
    rows: Paged
    columns: Paged
    chosen: Mapping[str, str]
    is_large: bool
    folded: int

    @property
    def team(self) -> str:
        return self.chosen.get("team", "")

    @property
    def pool(self) -> str:
        return self.chosen.get("pool", "")

    @property
    def is_filtered(self) -> bool:
        return bool(self.team or self.pool)


def matrix_query(request: HttpRequest) -> str:
    """Return the query of the address that chooses a part: ``?team=vision&rows=2``, or nothing."""
    chosen = _chosen(request)
    return f"?{urlencode(chosen)}" if chosen else ""


def matrix_part(request: HttpRequest, whole: Matrix, opened: Collection[str] = ()) -> MatrixPart:
    """Return the part that the address chooses. The rows and columns of the cells named in ``opened`` are in it
    whatever is chosen, so that nothing typed is lost.
    """
    chosen = _chosen(request)
    shows_empty = bool(chosen.get("empty") or chosen.get("pool"))
    ordered, folded = with_devices_first(whole, shows_empty=shows_empty)
    if opened:
        whole, _ = with_devices_first(whole, shows_empty=True)
    else:
        whole = ordered
    found = narrowed(ordered, chosen.get("team", ""), chosen.get("pool", ""))
    rows, columns = paged(request, found.rows, "rows", ROWS), paged(request, found.columns, "columns", COLUMNS)
    keys = [key.split(":", 2) for key in opened]
    holders = {(kind_of(row), row.holder.slug) for row in rows} | {(kind, slug) for kind, slug, _ in keys}
    pools = {column.pool.key for column in columns} | {pool for _, _, pool in keys}
    shown = Matrix(
        tuple(column for column in whole.columns if column.pool.key in pools),
        tuple(
            replace(row, cells=tuple(cell for cell in row.cells if cell.pool.key in pools))
            for row in whole.rows
            if (kind_of(row), row.holder.slug) in holders
        ),
    )
    is_large = len(whole.rows) > LARGE[0] or len(whole.columns) > LARGE[1]
    return MatrixPart(shown, rows, columns, chosen, is_large, folded)


def _chosen(request: HttpRequest) -> dict[str, str]:
    query = request.GET
    return {name: text for name in PARAMETERS if (text := query.get(name, "").strip().replace("\x00", ""))}
