"""Several limits in one change, its preview, and the matrix of all quotas."""

from typing import Any

from rest_framework import serializers

from allocations.limits import services as limit_services
from allocations.limits.changes import MAX_CHANGES, PoolSum
from allocations.limits.matrix import MatrixCell, MatrixRow, PoolColumn
from portal.api.http.strict import Body, List, Text
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.limit_fields import (
    HOLDER_KINDS,
    QUOTA_HOLDER_KINDS,
    FieldOut,
    LimitBody,
    LimitEffectOut,
    LimitOut,
)
from portal.tenants.models import Team


class ChangesBody(Body):
    changes = List(child=LimitBody(), allow_empty=False, max_length=MAX_CHANGES)


class PreviewedChangesBody(ChangesBody):
    token = Text(help_text="Of the preview of exactly these changes.")


class ChangeEffectOut(LimitEffectOut):
    holder_kind = serializers.ChoiceField(HOLDER_KINDS)
    holder = serializers.CharField(help_text="Slug; team/username of a member.")
    scope_kind = serializers.ChoiceField(["pool", "offering", "flavor", "all"])
    scope = serializers.CharField(help_text="Id of the pool or offering, name of the flavor, or all.")


class PoolSumOut(serializers.Serializer):
    pool = serializers.CharField()
    unit = serializers.CharField(help_text="GPUs, or units of the pool.")
    available = serializers.IntegerField(help_text="On healthy devices now.")
    before = serializers.IntegerField(help_text="All guaranteed quotas together, now.")
    after = serializers.IntegerField(help_text="All guaranteed quotas together, after the change.")


class ChangesPreviewOut(serializers.Serializer):
    token = serializers.CharField(
        help_text="Send it with the same changes to apply them. It is void once one of the limits has changed."
    )
    changes = ChangeEffectOut(many=True, help_text="In the order of the changes; as if all were set.")
    pools = PoolSumOut(many=True)
    kueue = FieldOut(many=True)


class ChangedLimitsOut(serializers.Serializer):
    results = LimitOut(many=True)


class MatrixPoolOut(serializers.Serializer):
    id = serializers.CharField()
    unit = serializers.CharField(help_text="GPUs, or units of the pool.")
    available = serializers.IntegerField(
        allow_null=True, help_text="On healthy devices now; null unless you see all teams."
    )
    allocated = serializers.IntegerField(
        allow_null=True, help_text="All guaranteed quotas together; null unless you see all teams."
    )


class MatrixCellOut(serializers.Serializer):
    pool = serializers.CharField()
    nominal = serializers.IntegerField(
        allow_null=True, help_text="null: no quota is set, which is not one of 0: nothing is borrowed or lent either."
    )
    borrowing = serializers.IntegerField(allow_null=True, help_text="null: unlimited.")
    lending = serializers.IntegerField(allow_null=True, help_text="null: all of its unused quota.")
    used = DecimalText(help_text="Decimal, in units of the pool; of a department that of its teams.")
    borrowed = DecimalText(help_text="Used beyond the team's guaranteed quota.")
    lent = DecimalText(help_text="Used by others of this quota.")
    over = DecimalText(help_text="The part of `borrowed` that nobody lends, since a limit was lowered.")


class MatrixRowOut(serializers.Serializer):
    holder_kind = serializers.ChoiceField(QUOTA_HOLDER_KINDS)
    holder = serializers.CharField(help_text="Slug.")
    cells = MatrixCellOut(many=True, help_text="One for each pool, in the order of `pools`.")


class MatrixOut(serializers.Serializer):
    pools = MatrixPoolOut(many=True)
    results = MatrixRowOut(many=True)


def pool_document(column: PoolColumn) -> dict[str, Any]:
    return {
        "id": column.pool.key,
        "unit": column.unit,
        "available": column.available,
        "allocated": column.allocated,
    }


def pool_sum_document(found: PoolSum) -> dict[str, Any]:
    return {
        "pool": found.pool.key,
        "unit": found.unit,
        "available": found.available,
        "before": found.before,
        "after": found.after,
    }


def row_document(row: MatrixRow) -> dict[str, Any]:
    return {
        "holder_kind": "team" if isinstance(row.holder, Team) else "department",
        "holder": row.holder.slug,
        "cells": [_cell_document(cell) for cell in row.cells],
    }


def _cell_document(cell: MatrixCell) -> dict[str, Any]:
    quota = vars(cell.quota) if cell.quota else {"nominal": None, "borrowing": 0, "lending": 0}
    return {
        "pool": cell.pool.key,
        **quota,
        **{name: limit_services.text(getattr(cell, name)) for name in ("used", "borrowed", "lent", "over")},
    }
