"""The matrix of limits as a table: a row for each team and department, a column for each pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from allocations.limits import services as limit_services
from allocations.limits.changes import ChangesPreview
from allocations.limits.matrix import Matrix, MatrixCell, MatrixRow, PoolColumn
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
    """A cell with its amounts, or with the form in which they are changed. ``used``, ``borrowed`` and ``over`` are ""
    if nothing is. ``quota`` is None if none is set, which is not one of 0.
    """

    key: str
    name: str
    anchor: str
    used: str
    borrowed: str
    over: str
    quota: Quota | None
    amounts: tuple[Amount, ...]
    form: CellForm | None
    stands_alone: bool

    @property
    def proposed(self) -> Quota:
        """Return the limits with which the form opens."""
        return self.quota or ZERO_QUOTA

    @property
    def details(self) -> str:
        """Return all amounts in words: ``Used 3, guaranteed 8, borrowed 0 (no limit), lent 0 (limit 1)``."""
        parts = (f"{one.label} {one.text}" + (f" ({one.bound})" if one.bound else "") for one in self.amounts)
        return ", ".join(parts).capitalize()


@dataclass(frozen=True)
class Row:
    kind: str
    slug: str
    depth: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Column:
    """A pool. ``sums`` says how much of what is available is allocated, and ``words`` the same as a sentence; ``sums``
    is "" to a person who does not see all teams.
    """

    key: str
    words: str
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
    rows = tuple(
        Row(
            kind_of(row),
            row.holder.slug,
            row.depth,
            tuple(cell(row, each, forms.get(key_of(row, each))) for each in row.cells),
        )
        for row in matrix.rows
    )
    is_divisible = any(len(one.pool.resources) > 1 for one in matrix.columns)
    return Table(tuple(_column(one) for one in matrix.columns), rows, is_divisible)


def _column(one: PoolColumn) -> Column:
    if one.available is None:
        return Column(one.pool.key, f"in {one.unit}", "", 0)
    allocated = one.allocated or 0
    words = f"{one.available} {one.unit} available, {allocated} allocated to teams"
    return Column(one.pool.key, words, f"{allocated} of {one.available}", max(0, allocated - one.available))


def cell(row: MatrixRow, found: MatrixCell, form: CellForm | None = None) -> Cell:
    key = key_of(row, found)
    used, borrowed, over = (limit_services.text(one) if one else "" for one in (found.used, found.borrowed, found.over))
    return Cell(
        key,
        f"{kind_of(row)} {row.holder.slug} for {found.pool.key}",
        f"cell-{key.replace(':', '-').replace('/', '-')}",
        used,
        borrowed,
        over,
        found.quota,
        tuple(_amounts(row, found)),
        form,
        row.stands_alone,
    )


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
        amounts = _differences(effect.before, change.quota, change.holder)
        lines.append(ChangeLine(f"{row.holder_kind} {row.holder}", row.scope, tuple(amounts), effect))
    return lines


def _differences(before: Quota | None, after: Quota | None, holder: object) -> list[Amount]:
    known = before or ZERO_QUOTA
    if after is None:
        return [Amount("Guaranteed", f"{known.nominal} → none")]
    labels = {"nominal": "Guaranteed"}
    if isinstance(holder, Department | Team):
        labels |= {"borrowing": "Borrowing limit", "lending": "Lending limit"}
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
