"""Builds the CEL selector that restricts a device request to MIG devices of one GPU. Pure."""

import re

from quotas.catalog.cel import equals

PARENT = "parentUUID"
OF_GPU = re.compile(re.escape(equals(PARENT, "").removesuffix('""')) + r'"([-A-Za-z0-9]+)"')
"""Matches what ``of_gpu`` returns, to read the GPU from a claim."""


def of_gpu(uuid: str) -> str:
    """Return CEL that selects the MIG devices of the GPU with this UUID."""
    return equals(PARENT, uuid)
