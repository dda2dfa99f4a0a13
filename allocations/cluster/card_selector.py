"""The CEL by which a request is steered to one card. Pure."""

import re

from quotas.catalog.cel import equals

PARENT = "parentUUID"
IN_CARD = re.compile(re.escape(equals(PARENT, "").removesuffix('""')) + r'"([-A-Za-z0-9]+)"')
"""What ``in_card`` writes, to know a steered claim again."""


def in_card(uuid: str) -> str:
    """CEL for the MIG devices of one card."""
    return equals(PARENT, uuid)
