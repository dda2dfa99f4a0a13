"""Builds the CEL selector that restricts a device request to one GPU, or to its MIG devices. Pure."""

import re

from quotas.catalog.cel import equals

PARENT, OWN = "parentUUID", "uuid"
OF_GPU = re.compile(
    f"(?:{'|'.join(re.escape(equals(name, '').removesuffix(chr(34) * 2)) for name in (PARENT, OWN))})"
    r'"([-A-Za-z0-9]+)"'
)
"""Matches what ``of_gpu`` returns, to read the GPU from a claim."""


def of_gpu(uuid: str, *, is_mig: bool = True) -> str:
    """Return CEL that selects the GPU with this UUID, or its MIG devices."""
    return equals(PARENT if is_mig else OWN, uuid)
