"""A person's own presets: requests kept under a name."""

from decimal import Decimal

from django.db import transaction

from portal.audit.entries import audit
from portal.core.errors import Invalid, NotVisible, Refused
from portal.core.locks import advisory_lock
from portal.core.quotation import named
from portal.tenants.models import User
from quotas.catalog import selectors
from quotas.catalog.models import MAX_NAME, Preset

MAX_PRESETS = 20
"""Of one person."""
MAX_QUERY = 8000


def save(user: User, name: str, offering: str, count: int, hours: Decimal, query: str) -> Preset:
    """Save a request of ``user`` under a name; ``query`` has its fields as the address of the page Request has them.

    Raises Invalid for a name that is empty or too long, a request that is too long, and above ``MAX_PRESETS``; Refused
    for a name that is taken; NotVisible for an offering that is not there.
    """
    name = name.replace("\x00", "").strip()
    if not 0 < len(name) <= MAX_NAME:
        raise Invalid({"name": [f"Give the preset a name of 1 to {MAX_NAME} characters."]})
    if len(query) > MAX_QUERY:
        raise Invalid({"name": ["This request is too long for a preset. Shorten its claim."]})
    found = selectors.offerings().filter(key=offering).first()
    if found is None:
        raise NotVisible(f"The offering {offering}", hint="Choose one that is listed.")
    with transaction.atomic(), advisory_lock("presets", str(user.pk)):
        names = set(user.presets.values_list("name", flat=True))
        if name in names:
            raise Refused(
                "name_taken", f"You have a preset {named(name)} already.", "Use another name, or remove it first."
            )
        if len(names) >= MAX_PRESETS:
            raise Invalid({"name": [f"You have {MAX_PRESETS} presets, which is the limit. Remove one first."]})
        row = Preset.objects.create(owner=user, name=name, offering=found, count=count, hours=hours, query=query)
        audit(user.username, "preset.set", name, after={"owner": user.username, "query": query})
    return row


def remove(user: User, id_: int) -> Preset:
    """Remove a preset of ``user`` and return it. Raises NotVisible."""
    with transaction.atomic():
        row = user.presets.filter(pk=id_).first()
        if row is None:
            raise NotVisible("This preset", hint="You see your own presets.")
        audit(user.username, "preset.remove", row.name, before={"owner": user.username, "query": row.query})
        row.delete()
    return row
