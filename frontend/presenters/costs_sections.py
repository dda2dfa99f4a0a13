"""The sections of costs that a person may see, and which of them a page belongs to."""

from dataclasses import dataclass

from django.urls import reverse

from portal.core.errors import Forbidden
from portal.tenants import access
from portal.tenants.access import Person

FOR_ALL = {"costs": "Costs", "my-cost": "My cost", "savings": "Savings"}
FOR_STAFF = {"cost-assets": "GPUs over time", "costs-fleet": "Fleet GPU-hours"}
PRICES = {"prices": "Prices"}
MONEY_FOR_STAFF = {"bills": "Bills and fixed costs", "proof": "Proof of the ledger"}


@dataclass(frozen=True)
class Section:
    """A link; ``current`` is the value of ``aria-current``: ``page``, ``true`` for a page below it, or empty."""

    word: str
    url: str
    current: str


def sections(user: Person, path: str) -> list[Section]:
    """Return the sections that the person may see, for a page with this path."""
    sees_all = access.sees_all(user)
    words = {**FOR_ALL, **(FOR_STAFF if sees_all else {}), **PRICES, **(MONEY_FOR_STAFF if sees_all else {})}
    urls = {reverse(name): word for name, word in words.items()}
    of_path = max((url for url in urls if _is_below(path, url)), key=len, default=reverse("costs"))
    return [
        Section(word, url, "" if url != of_path else "page" if url == path else "true") for url, word in urls.items()
    ]


def refuse_others_than_staff(user: Person) -> None:
    """Raise Forbidden unless the person sees the whole fleet."""
    if not access.sees_all(user):
        raise Forbidden(
            "auditor",
            detail="This page shows the use of all teams. Operators and auditors can see it.",
            hint="The costs of your teams are on the page Costs.",
        )


def is_of_costs(path: str) -> bool:
    """Return whether a page is one of costs: of the sections, or what a team, a project or an allocation costs."""
    return path.endswith("/costs") or any(_is_below(path, reverse(name)) for name in ("costs", "prices", "bills"))


def _is_below(path: str, url: str) -> bool:
    return path == url or path.startswith(f"{url}/")
