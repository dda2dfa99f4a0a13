"""The CEL by which a request is steered to one card. Pure.

A missing attribute would abort the whole allocation (Kubernetes resource.k8s.io/v1), so it is asked for first.
"""

import re

from quotas.catalog.cel import text

_ATTRIBUTES = 'device.attributes["gpu.nvidia.com"]'
IN_CARD = re.compile(re.escape(f'"parentUUID" in {_ATTRIBUTES} && {_ATTRIBUTES}.parentUUID == ') + r'"([-A-Za-z0-9]+)"')
"""What ``in_card`` writes, to know a steered claim again."""


def in_card(uuid: str) -> str:
    """CEL for the MIG devices of one card."""
    return f'"parentUUID" in {_ATTRIBUTES} && {_ATTRIBUTES}.parentUUID == {text(uuid)}'
