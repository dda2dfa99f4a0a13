"""The attributes and capacities that devices publish, which a claim can select by: names, types and sample values."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from allocations.claims.model import CLASSES, PRODUCT, PROFILE, Device, Value, qualified, short
from quotas.catalog import quantities

MAX_VALUES = 50
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
MAX_DOMAIN_LENGTH = 63


@dataclass(frozen=True)
class AttributeInfo:
    """An attribute or a capacity: its type, some of the values published, and the kinds of device that have it."""

    type: str
    values: tuple[Value, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class DeviceSchema:
    """By qualified name. ``profiles`` and ``products`` are the values of these attributes, all of them."""

    attributes: Mapping[str, AttributeInfo]
    capacities: Mapping[str, AttributeInfo]
    profiles: tuple[str, ...]
    products: tuple[str, ...]
    devices: tuple[str, ...]
    shareable: bool

    def document(self) -> dict[str, Any]:
        """As GET /offerings/{id}/device-schema answers it; the driver's own names are short."""
        return {
            "devices": list(self.devices),
            "profiles": list(self.profiles),
            "attributes": _listed(self.attributes),
            "capacities": _listed(self.capacities),
            "shareable": self.shareable,
        }


def _listed(attributes: Mapping[str, AttributeInfo]) -> list[dict[str, Any]]:
    return [
        {"name": short(name), "type": word.type, "values": list(word.values), "devices": list(word.devices)}
        for name, word in sorted(attributes.items(), key=lambda item: ("/" in short(item[0]), item[0]))
    ]


def of_devices(devices: Iterable[Device]) -> DeviceSchema:
    """Return the attributes and capacities that these devices publish."""
    known = list(devices)
    attributes: dict[str, tuple[str, set[Value], set[str]]] = {}
    capacities: dict[str, tuple[str, set[Value], set[str]]] = {}
    for device in known:
        for name, value in device.attributes.items():
            entry = attributes.setdefault(name, (type_of(device, name), set(), set()))
            entry[1].add(value)
            entry[2].add(device.kind)
        for name, amount in device.capacity.items():
            entry = capacities.setdefault(name, ("quantity", set(), set()))
            entry[1].add(amount)
            entry[2].add(device.kind)
    return DeviceSchema(
        attributes={name: _attribute(*entry) for name, entry in attributes.items()},
        capacities={name: _attribute(*entry) for name, entry in capacities.items()},
        profiles=_texts(attributes, PROFILE),
        products=_texts(attributes, PRODUCT),
        devices=tuple(kind for kind in CLASSES if any(device.kind == kind for device in known)),
        shareable=any(device.shareable for device in known),
    )


def type_of(device: Device, name: str) -> str:
    if name in device.versions:
        return "version"
    value = device.attributes[name]
    return "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"


def _texts(attributes: Mapping[str, tuple[str, set[Value], set[str]]], name: str) -> tuple[str, ...]:
    return tuple(sorted(str(value) for value in attributes[name][1])) if name in attributes else ()


def _attribute(type_: str, values: set[Value], kinds: set[str]) -> AttributeInfo:
    key = (lambda value: quantities.value(str(value))) if type_ == "quantity" else str
    ordered = sorted(values, key=key) if type_ != "int" else sorted(values, key=int)
    return AttributeInfo(type_, tuple(ordered[:MAX_VALUES]), tuple(kind for kind in CLASSES if kind in kinds))


def problem(name: str, attributes: Mapping[str, AttributeInfo], what: str) -> str:
    """Return why no device can be selected by the named attribute or capacity; "" if one can."""
    domain, _, identifier = qualified(name).rpartition("/")
    if not _IDENTIFIER.fullmatch(identifier):
        return (
            "A name is a C identifier of at most 32 characters, after a domain and a slash if it is not the driver's."
        )
    if len(domain) > MAX_DOMAIN_LENGTH or not _DOMAIN.fullmatch(domain):
        return f"The part before the slash is a DNS domain of at most {MAX_DOMAIN_LENGTH} characters."
    if qualified(name) in attributes:
        return ""
    known = sorted(short(each) for each in attributes)
    close = get_close_matches(short(name), known, 1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"No device here publishes the {what} {short(name)}.{meant} There are: {', '.join(known)}."
