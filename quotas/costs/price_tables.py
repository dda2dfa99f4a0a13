"""Prices, costs and terms as a CSV table: export, and import with a dry run.

| kind | of | term | amount | per |
|---|---|---|---|---|
| price | a flavor, or an offering | | of an hour; empty for an offering: that of its flavor again | gpu, or slice |
| cost | a flavor with a term, or a node as cluster/name | of a flavor's nodes | of an hour | gpu or node |
| term | a node as cluster/name | the term | | |

No text in an export is a spreadsheet formula (`portal.core.csv_cells`); an import reads it back.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from io import StringIO
from math import inf
from typing import Annotated, Literal

from django.db import transaction

from portal.core import csv_cells, rfc3339
from portal.core.errors import Invalid, Problem
from portal.core.quotation import quoted
from portal.tenants import access
from portal.tenants.models import User
from quotas.costs import capacity_services, services
from quotas.costs.models import NodeCost, NodeTerm, Price
from quotas.costs.node_split import PRESETS, Weights

COLUMNS = ("kind", "of", "term", "amount", "per", "split", "currency", "valid_from", "source")
REQUIRED = {"kind", "of"}
KINDS = ("price", "cost", "term")
COLUMN_OF_FIELD = {
    **dict.fromkeys(("per_gpu_hour", "per_slice_hour", "per_hour"), "amount"),
    **dict.fromkeys(("flavor", "offering", "node"), "of"),
}
"""The column that has what services name so; others have the same name."""
MAX_ROWS, MAX_SOURCE = 5000, 200


@dataclass(frozen=True)
class ImportedRow:
    """What became of a line of the table; ``message`` says what is wrong with it, or what it sets."""

    line: int
    result: Literal["created", "unchanged", "error"]
    message: str
    column: Annotated[str, "The column that is wrong; empty if no single one is."] = ""


@dataclass(frozen=True)
class Import:
    """What an import did, or would do. With an error in any row, nothing is imported."""

    rows: list[ImportedRow]
    is_applied: bool

    @property
    def errors(self) -> int:
        return sum(row.result == "error" for row in self.rows)


def import_table(user: User, text: str, *, dry_run: bool) -> Import:
    """Set what the rows of a CSV table say, all or nothing. A dry run does the same and takes it back.

    What begins last is set first: a row may begin in the past where nothing was stated before. So the history of one
    portal can be imported into another that has none.
    """
    access.require(user, "price.manage", None)
    found: list[ImportedRow] = []
    with transaction.atomic():
        known = {row for model in (Price, NodeCost, NodeTerm) for row in model._default_manager.only("pk")}
        for line, values in sorted(_rows(text), key=_begins_last):
            try:
                with transaction.atomic():
                    row = _set(user, values)
            except Problem as problem:
                found.append(_refused(line, problem))
            else:
                found.append(ImportedRow(line, "unchanged" if row in known else "created", str(row)))
                known.add(row)
        applied = not dry_run and not any(row.result == "error" for row in found)
        if not applied:
            transaction.set_rollback(True)
    return Import(sorted(found, key=lambda row: row.line), applied)


def export_table(user: User) -> str:
    """Return all prices, costs and terms as a table that can be imported. For operators and auditors."""
    access.require(user, "platform.view", None)
    return as_csv(_exported())


def as_csv(rows: Iterable[Mapping[str, str]]) -> str:
    """Return rows with a value for each of COLUMNS as a table."""
    out = StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cells.escaped(row[name]) for name in COLUMNS} for row in rows)
    return out.getvalue()


def _refused(line: int, problem: Problem) -> ImportedRow:
    """Return the error of a line: that of its first wrong column, or of the row as a whole."""
    for field, messages in problem.errors.items():
        return ImportedRow(line, "error", " ".join(messages), COLUMN_OF_FIELD.get(field, field))
    return ImportedRow(line, "error", f"{problem.detail} {problem.hint}".strip())


def _rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with the numbers of their lines; raise Invalid if it is none."""
    if "\x00" in text:
        raise Invalid({"csv": ["The table has a NUL character."]})
    reader = csv.DictReader(StringIO(text.lstrip("\ufeff")))
    try:
        names = reader.fieldnames or []
        unknown = [name for name in names if name not in COLUMNS]
        if unknown or not set(names) >= REQUIRED or len(set(names)) < len(names):
            raise Invalid(
                {"csv": [f"The first line has the names of the columns, each once, of {', '.join(COLUMNS)}."]}
            )
        for number, row in enumerate(reader):
            if number == MAX_ROWS:
                raise Invalid({"csv": [f"Give at most {MAX_ROWS} rows at a time."]})
            if None in row:
                raise Invalid({"csv": [f"Line {reader.line_num} has more columns than the first."]})
            yield reader.line_num, {name: csv_cells.unescaped((row.get(name) or "").strip()) for name in COLUMNS}
    except csv.Error as error:
        raise Invalid({"csv": [f"Line {reader.line_num} cannot be read: {error}."]}) from error


def _set(user: User, row: Mapping[str, str]) -> Price | NodeCost | NodeTerm:
    """Set what a row of the table says."""
    begins, of = _moment(row["valid_from"]), row["of"]
    if len(row["source"]) > MAX_SOURCE:
        raise Invalid({"source": [f"Give at most {MAX_SOURCE} characters."]})
    common = row["currency"], begins, row["source"]
    if row["kind"] == "price" and row["per"] in ("", "slice") and "/" in of:
        return services.set_slice_price(user, of, row["amount"] or None, *common)
    if row["kind"] == "price" and row["per"] in ("", "gpu"):
        return services.set_price(user, of, row["amount"], *common)
    if row["kind"] == "cost":
        cluster, _, node = of.partition("/")
        is_node = bool(node)
        subject = capacity_services.subject_named(user, "" if is_node else of, row["term"], cluster, node)
        return capacity_services.set_node_cost(user, subject, row["amount"], row["per"] or "gpu", row["split"], *common)
    if row["kind"] == "term":
        cluster, _, node = of.partition("/")
        return capacity_services.set_node_term(user, cluster, node, row["term"], begins)
    if row["kind"] in KINDS:
        raise Invalid({"per": ["A flavor's price is per gpu, an offering's per slice."]})
    raise Invalid({"kind": [f"Use one of {', '.join(KINDS)}."]})


def _begins_last(numbered: tuple[int, Mapping[str, str]]) -> tuple[int, float, int]:
    """Return the order of a row: terms before costs, list prices before those of flavors, and the last to begin first;
    what cannot be read, and what begins now, keep their places before them.
    """
    line, row = numbered
    before = {"term": 0, "cost": 1, "price": 1 if "/" in row["of"] else 2}
    try:
        begins = _moment(row["valid_from"])
    except Invalid:
        begins = None
    return before.get(row["kind"], 0), -begins.timestamp() if begins else -inf, line


def _moment(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return rfc3339.time(text)
    except ValueError as error:
        words = f"{quoted(text)} is not a valid time. Use e.g. 2026-11-01T00:00:00Z."
        raise Invalid({"valid_from": [words]}) from error


def _exported() -> Iterator[dict[str, str]]:
    for price in Price.objects.select_related("flavor", "offering").order_by(
        "flavor__name", "offering__key", "valid_from"
    ):
        of, per = (price.flavor.name, "gpu") if price.offering is None else (price.offering.key, "slice")
        amount = price.per_gpu_hour if price.offering is None else price.per_slice_hour
        yield _row("price", of, price.valid_from, amount=amount, per=per, currency=price.currency, source=price.source)
    for cost in NodeCost.objects.select_related("flavor", "node").order_by(
        "flavor__name", "term", "node", "valid_from"
    ):
        of = f"{cost.node.cluster_id}/{cost.node}" if cost.node else str(cost.flavor)
        yield _row(
            "cost",
            of,
            cost.valid_from,
            term=cost.term,
            amount=cost.per_hour,
            per=cost.per,
            split=split_of(cost) if cost.per == NodeCost.Per.NODE else "",
            currency=cost.currency,
            source=cost.source,
        )
    for term in NodeTerm.objects.select_related("node").order_by("node__cluster", "node__name", "valid_from"):
        yield _row("term", f"{term.node.cluster_id}/{term.node}", term.valid_from, term=term.term)


def split_of(cost: NodeCost) -> str:
    """Return how the cost of a node is split: the name of a preset, or its weights."""
    weights = Weights(*(Fraction(getattr(cost, name)) for name in capacity_services.WEIGHTS))
    named = next((name for name, preset in PRESETS.items() if preset == weights), "")
    return named or ":".join(f"{getattr(cost, name).normalize():f}" for name in capacity_services.WEIGHTS)


def _row(kind: str, of: str, begins: datetime, amount: Decimal | None = None, **values: str) -> dict[str, str]:
    text = "" if amount is None else f"{amount.normalize():f}"
    at = begins.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {**dict.fromkeys(COLUMNS, ""), "kind": kind, "of": of, "valid_from": at, "amount": text, **values}
