"""Kubernetes quantities in the API server's spelling, so that equal amounts are equal text."""


def of_gib(gib: int) -> str:
    return of_mib(gib * 1024)


def of_mib(mib: int) -> str:
    """Return the quantity with the largest binary suffix that gives a whole number: 1024 → `1Gi`, 9984 → `9984Mi`."""
    amount, suffixes = mib, ["Mi", "Gi", "Ti"]
    while amount and amount % 1024 == 0 and len(suffixes) > 1:
        amount //= 1024
        suffixes.pop(0)
    return f"{amount}{suffixes[0]}"
