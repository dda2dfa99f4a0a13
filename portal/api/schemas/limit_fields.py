"""The fields of limits, and of what setting one would do."""

from rest_framework import serializers

from portal.api.http.edits import Update
from portal.api.http.strict import Body, Integer, Text
from portal.api.schemas.allocation_output import PHASES
from portal.api.schemas.decimal_text import DecimalText
from quotas.limits.models import MAX_UNITS

HOLDER_KINDS = ["department", "team", "project", "member"]
QUOTA_HOLDER_KINDS = ["department", "team"]


class LimitOut(serializers.Serializer):
    id = serializers.IntegerField()
    holder_kind = serializers.ChoiceField(HOLDER_KINDS)
    holder = serializers.CharField(help_text="Slug; team/username of a member.")
    scope_kind = serializers.ChoiceField(["pool", "offering", "flavor", "all"])
    scope = serializers.CharField(help_text="Id of the pool or offering, name of the flavor, or all.")
    unit = serializers.CharField(help_text="GPUs, slices, or units of the pool.")
    nominal = serializers.IntegerField()
    borrowing = serializers.IntegerField(allow_null=True, help_text="null: unlimited.")
    lending = serializers.IntegerField(allow_null=True, help_text="null: all of its unused quota.")
    used = DecimalText(allow_null=True, help_text="Decimal; null where Kueue keeps the limit, see /queues/{team}.")
    enforced_by = serializers.ChoiceField(["kueue", "portal"])


class LimitSpecBody(Body):
    nominal = Integer(min_value=0, max_value=MAX_UNITS)
    borrowing = Integer(required=False, allow_null=True, min_value=0, max_value=MAX_UNITS, default=0)
    lending = Integer(required=False, allow_null=True, min_value=0, max_value=MAX_UNITS, default=None)


class LimitSpecChange(Update):
    """A limit as GET gives it, or a part of it; omitted amounts stay unchanged. What is used is ignored."""

    shown = LimitOut
    observed = frozenset({"used"})
    nominal = Integer(required=False, min_value=0, max_value=MAX_UNITS)
    borrowing = Integer(required=False, allow_null=True, min_value=0, max_value=MAX_UNITS)
    lending = Integer(required=False, allow_null=True, min_value=0, max_value=MAX_UNITS)


class LimitBody(LimitSpecBody):
    """A limit: its holder (`department`, `team`, `project`, or `team` with `member`) and its scope (`pool`, `offering`,
    `flavor`, or none of them for all GPUs).
    """

    exclusive = (("department", "team", "project"), ("pool", "offering", "flavor"))
    department = Text(required=False)
    team = Text(required=False)
    project = Text(required=False)
    member = Text(required=False, help_text="Username; with team.")
    pool = Text(required=False)
    offering = Text(required=False)
    flavor = Text(required=False)


class AmountsOut(serializers.Serializer):
    nominal = serializers.IntegerField()
    borrowing = serializers.IntegerField(allow_null=True)
    lending = serializers.IntegerField(allow_null=True)


class TouchedOut(serializers.Serializer):
    id = serializers.UUIDField()
    name = serializers.CharField()
    project = serializers.CharField()
    offering = serializers.CharField()
    slices = serializers.IntegerField(help_text="Of a custom claim its devices.")
    phase = serializers.ChoiceField(PHASES)


class FieldOut(serializers.Serializer):
    kind = serializers.CharField()
    name = serializers.CharField()
    field = serializers.CharField()
    before = serializers.CharField(allow_null=True)
    after = serializers.CharField(allow_null=True)


class LimitEffectOut(serializers.Serializer):
    before = AmountsOut(allow_null=True)
    after = AmountsOut()
    unit = serializers.CharField()
    in_use = DecimalText()
    over = DecimalText(help_text="In use beyond all that it can get with this limit; the change ends nothing.")
    borrowed = DecimalText(
        help_text="In use beyond its guaranteed quota with this limit: Kueue may reclaim it for the lender."
    )
    allocations = TouchedOut(many=True)
    detail = serializers.CharField()


class EffectOut(LimitEffectOut):
    kueue = FieldOut(many=True)
