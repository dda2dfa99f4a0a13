"""The links from the costs page to its neighbours."""

from django.urls import NoReverseMatch, reverse

FOR_ALL = {"savings": "Savings"}
FOR_STAFF = {"cost-assets": "GPUs over time", "costs-fleet": "Fleet and balance"}


def sections(*, sees_all: bool) -> list[tuple[str, str]]:
    """Return (text, address) of the pages that there are."""
    names = {**(FOR_STAFF if sees_all else {}), **FOR_ALL}
    found = []
    for name, word in names.items():
        try:
            found.append((word, reverse(name)))
        except NoReverseMatch:
            continue
    return found
