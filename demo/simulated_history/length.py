"""How long a simulated history may be. Pure."""

import re

MAX_DAYS = 90


def days(text: str) -> int:
    """Return the number of days that ``30d`` names; raise ValueError with a sentence for what is none."""
    found = re.fullmatch(r"([0-9]{1,3})d", text)
    if found is None or not 1 <= int(found[1]) <= MAX_DAYS:
        raise ValueError(f"{text!r} is no length of a history. Give whole days from 1d to {MAX_DAYS}d, such as 30d.")
    return int(found[1])
