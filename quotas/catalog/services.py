"""What operators decide about flavors and offerings that discovery found, and presets."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from django.db import IntegrityError, transaction

from portal.audit.entries import audit
from portal.core.errors import Invalid, NotVisible, Refused
from portal.core.locks import RowLock, advisory_lock, unlocked
from portal.core.quotation import named
from portal.tenants import access
from portal.tenants.actors import Actor
from portal.tenants.models import Project
from portal.workqueue import queue as workqueue
from portal.workqueue import targets
from quotas.catalog import quantities, references, selectors, share_settings, shortnames, versions
from quotas.catalog.models import Flavor, Offering, Pool, Preset

ACTION = "catalog.manage"
MAX_GPU_MIB = 2**24
"""16 TiB: more than any GPU has, and a column has room for it."""


def configure_flavor(
    actor: Actor, flavor: Flavor, decided: Mapping[str, Any], lock: RowLock[Flavor] = unlocked
) -> Flavor:
    """Set what operators decide about a flavor, any of `Flavor.DECIDED` and its `name`.

    An accepted flavor becomes a proposal again while nothing refers to it (``references``). Raises Forbidden; Refused
    (wrong_phase) for that and for what comes too late; Invalid for an invalid name and for CPU and memory that its
    nodes or GPUs do not have.
    """
    access.require(actor, ACTION, None)
    with transaction.atomic():
        flavor = lock(flavor)
        after = {name: value for name, value in decided.items() if getattr(flavor, name) != value}
        if not after:
            return flavor
        check_shares(flavor, after)
        check_gpu_memory(flavor, after)
        cluster = flavor.cluster_id
        if after.get("accepted") is False:
            _require_unused(flavor)
        before = {name: getattr(flavor, name) for name in after}
        if "name" in after:
            _rename(flavor, after["name"])
        for name, value in after.items():
            setattr(flavor, name, value)
        flavor.save(update_fields=list(after))
        audit(actor.username, "flavor.configure", before.get("name", flavor.name), before=before, after=after)
        workqueue.enqueue(
            targets.platform(cluster),
            targets.inventory(cluster),
            *(targets.project(cluster, slug) for slug in _live_projects(cluster)),
        )
    return flavor


def check_shares(flavor: Flavor, decided: Mapping[str, Any]) -> None:
    """Raise Invalid if CPU or memory per GPU is more than a node has, or less than a slice can use."""
    if not {"cpu_millicores_per_gpu", "memory_mib_per_gpu"} & decided.keys():
        return
    smallest = min((offering.memory_part for offering in flavor.offerings.all()), default=Fraction(1))
    fact = share_settings.FlavorFact(flavor.name, flavor.most_per_gpu, smallest)
    if errors := share_settings.problems(fact, decided):
        raise Invalid(errors)


def check_gpu_memory(flavor: Flavor, decided: Mapping[str, Any]) -> None:
    """Raise Invalid if the memory of a whole GPU is less than what is labelled of it, or of a slice of it, or cannot be
    so much.
    """
    memory, least = decided.get("gpu_memory_mib"), max(1, flavor.memory_mib)
    if memory is not None and not least <= memory <= MAX_GPU_MIB:
        words = [f"Give {quantities.memory_text(least)} to {quantities.memory_text(MAX_GPU_MIB)}."]
        if flavor.memory_mib:
            words.append("The first is what a GPU, or a slice of it, has by its label; empty (null) is what that says.")
        raise Invalid({"gpu_memory_mib": [" ".join(words)]})


def _require_unused(flavor: Flavor) -> None:
    """Raise Refused (wrong_phase) if anything refers to an accepted flavor, by its name or in Kueue."""
    references.lock(flavor)
    if found := references.to_flavor(flavor):
        raise Refused(
            "wrong_phase",
            f"{flavor.name} cannot become a proposal again, since {' and '.join(found)} refer to it.",
            "Hide it instead (hidden: true): nothing of it is offered then.",
        )


def _rename(flavor: Flavor, name: str) -> None:
    """Rename a proposal with the keys of its pools and offerings.

    Past capacity keeps the former name: nobody could hold any of it, and without a price it has no cost.
    """
    if flavor.accepted:
        raise Refused(
            "wrong_phase",
            f"{flavor.name} was accepted under that name: limits, the ledger and the cluster refer to it.",
            "Give it a title instead; a proposal can still be renamed.",
        )
    if flavor.prices.exists():
        raise Refused(
            "wrong_phase",
            f"{flavor.name} has a price, by which hours of its GPUs are rated under that name.",
            "Give it a title instead; a proposal without a price can still be renamed.",
        )
    if not shortnames.is_name(name):
        words = f"Lower-case letters, digits and hyphens, at most {shortnames.MAX_LENGTH}."
        raise Invalid({"name": [words]})
    if Flavor.objects.filter(name=name).exists():
        raise Invalid({"name": [f"There is a flavor {name} already."]})
    rows: list[Pool | Offering] = [*flavor.pools.all(), *flavor.offerings.all()]
    for row in rows:
        row.key = f"{name}/{row.key.partition('/')[2]}"
        row.save(update_fields=["key"])


def accept_flavor(actor: Actor, flavor: Flavor) -> Flavor:
    """Offer a discovered flavor: from now on Kueue has it, and limits on it count."""
    return configure_flavor(actor, flavor, {"accepted": True})


def _live_projects(cluster: str) -> Iterable[str]:
    return Project.objects.filter(cluster=cluster, archived_at=None).values_list("slug", flat=True)


def uses_of_flavor(actor: Actor, flavor: Flavor) -> list[str]:
    """Return what keeps an accepted flavor from becoming a proposal again. Raises Forbidden."""
    access.require(actor, ACTION, None)
    return references.to_flavor(flavor)


def flavor_to_configure(actor: Actor, flavor: Flavor) -> Flavor:
    """Return the flavor, for a form that changes it. Raises Forbidden."""
    access.require(actor, ACTION, None)
    return flavor


def hide_offering(actor: Actor, offering: Offering, *, hidden: bool, lock: RowLock[Offering] = unlocked) -> Offering:
    """Hide an offering from the catalog, or show it again; what is held of it stays held, and past hours are rated as
    it was then. Raises Forbidden.
    """
    access.require(actor, ACTION, None)
    with transaction.atomic():
        offering = lock(offering)
        if offering.hidden == hidden:
            return offering
        with advisory_lock("catalog", offering.flavor.cluster_id):
            versions.record([offering.flavor])
            offering.hidden = hidden
            offering.save(update_fields=["hidden"])
            versions.record([offering.flavor])
            before, after = {"hidden": not hidden}, {"hidden": hidden}
            audit(actor.username, "offering.hide", offering.key, before=before, after=after)
    return offering


def preset_to_change(actor: Actor, id_: int | None = None) -> Preset:
    """Return the operators' preset with this id, for a form that changes it; without an id a new one. Raises Forbidden,
    NotVisible.
    """
    access.require(actor, ACTION, None)
    row = Preset() if id_ is None else selectors.operators_presets().filter(pk=id_).first()
    if row is None:
        raise NotVisible("The preset")
    return row


def save_preset(actor: Actor, preset: Preset, changes: Mapping[str, Any], lock: RowLock[Preset] = unlocked) -> Preset:
    """Create the preset, or change it, and return it; without changes nothing is written.

    Raises Forbidden; Refused for a name that is taken.
    """
    access.require(actor, ACTION, None)
    with transaction.atomic():
        preset = lock(preset) if preset.pk else preset
        if not changes:
            return preset
        before = _preset(preset) if preset.pk else None
        for name, value in changes.items():
            setattr(preset, name, value)
        try:
            with transaction.atomic():
                preset.save()
        except IntegrityError as error:
            words = f"There is a preset {named(preset.name)} already."
            raise Refused("name_taken", words, "Choose another name.") from error
        audit(actor.username, "preset.set", preset.name, before=before, after=_preset(preset))
    return preset


def _preset(preset: Preset) -> dict[str, Any]:
    return {
        "offering": preset.offering.key,
        "count": preset.count,
        "hours": str(preset.hours),
        "position": preset.position,
        "hidden": preset.hidden,
    }
