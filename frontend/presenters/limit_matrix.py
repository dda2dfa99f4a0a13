"""The matrix of limits as a table: a row for each team and department, a column for each pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from allocations.limits import services as limit_services
from allocations.limits.changes import ChangesPreview
from allocations.limits.matrix import Matrix, MatrixCell, MatrixRow
from allocations.limits.services import Effect, LimitChange
from allocations.models import Allocation
from frontend.limit_cell_form import CellForm, key_of, kind_of
from portal.tenants.models import Department, Team
from quotas.limits.tree import ZERO_QUOTA, Quota


@dataclass(frozen=True)
class Amount:
    """An amount of a cell; ``bound`` is what limits it, "" if nothing is said of that."""

    label: str
    text: str
    bound: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell with its amounts, or with the form in which they are changed. ``over`` is "" if nothing is; ``is_empty``:
    the holder has no quota of the pool, which is not one of 0, and uses none.
    """

    key: str
    name: str
    anchor: str
    amounts: tuple[Amount, ...]
    over: str
    is_empty: bool
    form: CellForm | None
    limit_id: int | None = None
    """Of an open cell: the quota that can be removed; None if none is set, which is not a quota of 0."""


@dataclass(frozen=True)
class Row:
    kind: str
    slug: str
    depth: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Column:
    """A pool. ``sums`` says what is available and allocated, "" to a person who does not see all teams."""

    key: str
    unit: str
    sums: str
    overcommitted: int


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    is_divisible: bool


def team_slugs(matrix: Matrix) -> list[str]:
    return [row.holder.slug for row in matrix.rows if isinstance(row.holder, Team)]


def table(matrix: Matrix, forms: Mapping[str, CellForm] | None = None) -> Table:
    """Return the table, where the cells with a form are open. ``is_divisible``: a GPU of some pool counts in two
    resources, so that a use is the larger of two fractions.
    """
    forms = forms or {}
    columns = tuple(
        Column(
            one.pool.key,
            one.unit,
            ""
            if one.available is None
            else f"{one.available} {one.unit} available, {one.allocated} allocated to teams",
            max(0, (one.allocated or 0) - one.available) if one.available is not None else 0,
        )
        for one in matrix.columns
    )
    limits = _limit_ids([(row, each) for row in matrix.rows for each in row.cells if key_of(row, each) in forms])
    rows = tuple(
        Row(
            kind_of(row),
            row.holder.slug,
            row.depth,
            tuple(_cell(row, each, forms.get(key := key_of(row, each)), limits.get(key)) for each in row.cells),
        )
        for row in matrix.rows
    )
    return Table(columns, rows, any(len(one.pool.resources) > 1 for one in matrix.columns))


def cell(row: MatrixRow, found: MatrixCell, form: CellForm | None = None) -> Cell:
    """Return one cell; one query if it is open."""
    key = key_of(row, found)
    return _cell(row, found, form, _limit_ids([(row, found)] if form else []).get(key))


def _cell(row: MatrixRow, found: MatrixCell, form: CellForm | None, limit_id: int | None) -> Cell:
    key = key_of(row, found)
    return Cell(
        key,
        f"{kind_of(row)} {row.holder.slug} for {found.pool.key}",
        f"cell-{key.replace(':', '-').replace('/', '-')}",
        tuple(_amounts(row, found)),
        limit_services.text(found.over) if found.over else "",
        found.quota is None and not (found.used or found.lent),
        form,
        limit_id,
    )


def _limit_ids(opened: Sequence[tuple[MatrixRow, MatrixCell]]) -> dict[str, int]:
    """Return the limits of the open cells that have one, by the key of their cell; one query, none without a cell."""
    rows = [LimitChange(row.holder, each.pool, ZERO_QUOTA).row() for row, each in opened]
    known = zip(opened, limit_services.current(rows), strict=True)
    return {key_of(*cell): limit.pk for cell, limit in known if limit is not None}


def _amounts(row: MatrixRow, found: MatrixCell) -> list[Amount]:
    text, quota = limit_services.text, found.quota or ZERO_QUOTA
    amounts = [Amount("Used", text(found.used)), Amount("Guaranteed", str(quota.nominal) if found.quota else "none")]
    if isinstance(row.holder, Team):
        amounts.append(Amount("Borrowed", text(found.borrowed), _bound(quota.borrowing)))
    elif not row.stands_alone:
        amounts.append(Amount("Borrowing limit", _or_unlimited(quota.borrowing)))
    return [*amounts, Amount("Lent", text(found.lent), "" if row.stands_alone else _bound(quota.lending))]


def _bound(amount: int | None) -> str:
    return "no limit" if amount is None else f"limit {amount}"


@dataclass(frozen=True)
class ChangeLine:
    """One change of the preview: what is different, and what follows from it."""

    holder: str
    pool: str
    amounts: tuple[Amount, ...]
    effect: Effect


def change_lines(changes: Sequence[LimitChange], preview: ChangesPreview) -> list[ChangeLine]:
    lines = []
    for change, effect in zip(changes, preview.effects, strict=True):
        row = change.row()
        amounts = _differences(effect.before, effect.after, change.holder)
        lines.append(ChangeLine(f"{row.holder_kind} {row.holder}", row.scope, tuple(amounts), effect))
    return lines


def _differences(before: Quota | None, after: Quota, holder: object) -> list[Amount]:
    labels = {"nominal": "Guaranteed"}
    if isinstance(holder, Department | Team):
        labels |= {"borrowing": "Borrowing limit", "lending": "Lending limit"}
    known = before or ZERO_QUOTA
    return [
        Amount(label, f"{_or_unlimited(getattr(known, name)) if before else 'none'} → {_or_unlimited(amount)}")
        for name, label in labels.items()
        if (amount := getattr(after, name)) != getattr(known, name) or (before is None and name == "nominal")
    ]


def _or_unlimited(amount: int | None) -> str:
    return "unlimited" if amount is None else str(amount)


def affected(preview: ChangesPreview) -> list[Allocation]:
    """Return the allocations that count against one of the limits, each once."""
    return list({row.pk: row for effect in preview.effects for row in effect.affected}.values())
