"""The attributes and capacities that devices publish, by which a claim can select: names, types and sample values."""

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
    """An attribute or capacity: its type, some published values, and the kinds of device that publish it."""

    type: str
    values: tuple[Value, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class DeviceSchema:
    """The attributes and capacities by qualified name, and all MIG profiles and products."""

    attributes: Mapping[str, AttributeInfo]
    capacities: Mapping[str, AttributeInfo]
    profiles: tuple[str, ...]
    products: tuple[str, ...]
    devices: tuple[str, ...]
    shareable: bool

    def document(self) -> dict[str, Any]:
        """Return the response of GET /offerings/{id}/device-schema, with short names for the driver's own domain."""
        return {
            "devices": list(self.devices),
            "profiles": list(self.profiles),
            "attributes": _listed(self.attributes),
            "capacities": _listed(self.capacities),
            "shareable": self.shareable,
        }


def _listed(attributes: Mapping[str, AttributeInfo]) -> list[dict[str, Any]]:
    return [
        {"name": short(name), "type": info.type, "values": list(info.values), "devices": list(info.devices)}
        for name, info in sorted(attributes.items(), key=lambda item: ("/" in short(item[0]), item[0]))
    ]


def of_devices(devices: Iterable[Device]) -> DeviceSchema:
    """Return the attributes and capacities that these devices publish."""
    devices = list(devices)
    attributes: dict[str, tuple[str, set[Value], set[str]]] = {}
    capacities: dict[str, tuple[str, set[Value], set[str]]] = {}
    for device in devices:
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
        devices=tuple(kind for kind in CLASSES if any(device.kind == kind for device in devices)),
        shareable=any(device.shareable for device in devices),
    )


def type_of(device: Device, name: str) -> str:
    """Return the type of the device's attribute: version, bool, int or string."""
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
    """Return why no device can be selected by the named attribute or capacity; "" if one can.

    ``what`` is "attribute" or "capacity".
    """
    domain, _, identifier = qualified(name).rpartition("/")
    if not _IDENTIFIER.fullmatch(identifier):
        return (
            "A name is a C identifier of at most 32 characters, after a domain and a slash if it is not the driver's."
        )
    if len(domain) > MAX_DOMAIN_LENGTH or not _DOMAIN.fullmatch(domain):
        return f"The part before the slash is a DNS domain of at most {MAX_DOMAIN_LENGTH} characters."
    if qualified(name) in attributes:
        return ""
    names = sorted(short(each) for each in attributes)
    matches = get_close_matches(short(name), names, 1)
    suggestion = f" Did you mean {matches[0]}?" if matches else ""
    known = f"There are: {', '.join(names)}." if names else "None publishes any."
    return f"No device here publishes the {what} {short(name)}.{suggestion} {known}"
