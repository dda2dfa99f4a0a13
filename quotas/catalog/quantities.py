"""Amounts as Kubernetes writes them, as far as device memory is written: `9984Mi`, `40Gi`, `85899345920`."""

_MIB = {"": 1 / 2**20, "Ki": 1 / 2**10, "Mi": 1, "Gi": 2**10, "Ti": 2**20}


def mib(quantity: str) -> int:
    """Whole MiB, rounded down; ValueError for another unit.

    Source: k8s.io/apimachinery pkg/api/resource, binary SI.
    """
    number = quantity.rstrip("KMGTi")
    unit = quantity[len(number) :]
    if unit not in _MIB:
        raise ValueError(f"{quantity!r} is no amount of memory in bytes, Ki, Mi, Gi or Ti")
    return int(int(number) * _MIB[unit])
