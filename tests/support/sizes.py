"""How many random cases a test draws: fewer by default, and all with `--long`, which is `make test-long`."""

is_long = False


def size(default: int, full: int) -> int:
    return full if is_long else default
