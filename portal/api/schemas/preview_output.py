"""The preview of a request in REST answers (docs/reference/api.md)."""

from typing import Any

from rest_framework import serializers

from allocations.capacity.node_shares import of_request
from allocations.domain.isolation import LEVELS
from allocations.requests.preview import Preview
from portal.api.schemas.allocation_output import PlannedOut, WarningOut, hours, isolation, manifest
from portal.api.schemas.cost_output import amount
from portal.api.schemas.decimal_text import DecimalText
from portal.api.schemas.node_share_output import NodeShareOut, node_share
from portal.api.schemas.spec_fields import output_of
from portal.core.errors import Violation

ViolationOut = output_of(Violation)


class AlternativeOut(serializers.Serializer):
    offering = serializers.CharField()
    count = serializers.IntegerField()
    hours = DecimalText(help_text="Decimal.")
    starts_at = serializers.DateTimeField(allow_null=True)
    price = DecimalText(allow_null=True, help_text="Decimal, in total.")
    fits = serializers.ChoiceField(["now", "queue", "never"])


class WarningPreviewedOut(WarningOut):
    alternative = AlternativeOut(allow_null=True, help_text="An offering that suits it better.")


class PriceQuotedOut(serializers.Serializer):
    per_hour = DecimalText(allow_null=True, help_text="Decimal; null without a price.")
    total = DecimalText(allow_null=True, help_text="Decimal; null without a price.")
    currency = serializers.CharField()


class WaitOut(serializers.Serializer):
    p50_s = serializers.IntegerField(allow_null=True)
    p90_s = serializers.IntegerField(allow_null=True)


class PreviewOut(serializers.Serializer):
    fits = serializers.ChoiceField(["now", "queue", "never"])
    reasons = ViolationOut(many=True)
    alternatives = AlternativeOut(many=True)
    warnings = WarningPreviewedOut(many=True, help_text="Choices that are accepted but probably unintended.")
    isolation = serializers.ChoiceField(LEVELS)
    isolation_note = serializers.CharField()
    node_share = NodeShareOut(allow_null=True, help_text="CPU, memory and pods of its node that come with all slices.")
    matching_devices = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="Of a custom claim: the devices that meet each request or alternative, in order, in use or not.",
    )
    price = PriceQuotedOut()
    wait = WaitOut()
    manifests = PlannedOut(many=True)
    starts_at = serializers.DateTimeField(allow_null=True)
    expected_start = serializers.DateTimeField(
        allow_null=True,
        help_text="When the slices are expected to be held: now, at starts_at, or once the ends of allocations release "
        "enough, as they are now; null if never or unknown.",
    )
    hours = DecimalText(allow_null=True, help_text="Decimal: time held, or null if an end date was requested.")
    ends_at = serializers.DateTimeField(
        allow_null=True, help_text="The requested end date; with hours null until held."
    )
    give_up_at = serializers.DateTimeField(help_text="When it would end if it were not held by then.")


NO_ESTIMATE: dict[str, int | None] = {"p50_s": None, "p90_s": None}


def preview(seen: Preview, planned: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "fits": seen.fits,
        "reasons": [vars(violation) for violation in seen.violations],
        "alternatives": [alternative.document() for alternative in seen.alternatives],
        "warnings": [
            {**vars(warned), "alternative": warned.alternative.document() if warned.alternative else None}
            for warned in seen.warnings
        ],
        **isolation(seen.isolation),
        "node_share": node_share(of_request(seen.offering, seen.spec.count, seen.claim)),
        "matching_devices": seen.prepared_claim.matches() if seen.prepared_claim else [],
        "price": {
            "per_hour": amount(seen.price_per_hour),
            "total": amount(seen.price_total),
            "currency": seen.currency,
        },
        "wait": NO_ESTIMATE,
        "manifests": [manifest(content) for content in planned],
        "starts_at": seen.period.starts_at,
        "expected_start": seen.expected_start,
        "hours": hours(seen.period.hours),
        "ends_at": seen.period.ends_at,
        "give_up_at": seen.period.give_up_at,
    }
