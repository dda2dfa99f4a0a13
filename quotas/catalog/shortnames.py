"""Short names of flavors: `NVIDIA-H100-80GB-HBM3` is `h100`.

The first free name of: the flavor's current name; the model without vendor, memory and form factor; that with how its
GPUs are divided; with the memory; the whole product; the model with a number. Names leave room for `gpu-portal-hold-`
in 63 characters.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import count

from quotas.catalog.types import Identity

MAX_LENGTH = 47
PLAIN = "plain"
NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_NOISE = re.compile(r"nvidia|tesla|geforce|quadro|generation|shared|pcie|sxm\d*|hbm\d*e?|\d+gb")


def is_name(text: str) -> bool:
    """Return whether the text can be a flavor's name: a DNS label of at most MAX_LENGTH characters."""
    return len(text) <= MAX_LENGTH and bool(NAME.fullmatch(text))


def short_name(product: str) -> str:
    """Return the model in a `nvidia.com/gpu.product` label: `NVIDIA-H100-NVL` is `h100-nvl`."""
    gpu = product.lower().partition("-mig-")[0]
    words = [word for word in re.split(r"[^a-z0-9]+", gpu) if word and not _NOISE.fullmatch(word)]
    return "-".join(words)[:40].strip("-") or "gpu"


def assign(
    flavors: Iterable[tuple[Identity, int]], current_names: Mapping[Identity, str], reserved_names: Collection[str]
) -> dict[Identity, str]:
    """Return a name for each (identity, memory in MiB). `current_names` stay; `reserved_names` are those of other
    clusters.
    """
    found = sorted(flavors, key=lambda item: (item[0].product, item[0].path, item[0].strategy))
    names = {identity: current_names[identity] for identity, _ in found if identity in current_names}
    used = {*reserved_names, *current_names.values()}
    for identity, memory_mib in found:
        if identity not in names:
            names[identity] = next(name for name in _candidates(identity, memory_mib) if name not in used)
            used.add(names[identity])
    return names


def _candidates(identity: Identity, memory_mib: int) -> Iterator[str]:
    short = short_name(identity.product)
    yield short
    if identity.strategy != PLAIN:
        yield f"{short}-{identity.strategy}"
    if memory_mib:
        yield f"{short}-{round(memory_mib / 1024)}gb"
    yield re.sub(r"[^a-z0-9]+", "-", identity.product.lower())[:MAX_LENGTH].strip("-")
    yield from (f"{short}-{number}" for number in count(2))
