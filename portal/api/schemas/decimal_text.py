"""Money, hours and other decimals in answers: text, which keeps all digits."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


@extend_schema_field({"type": "string", "format": "decimal"})
class DecimalText(serializers.CharField):
    """A decimal number as text, such as ``-2.0500``."""
