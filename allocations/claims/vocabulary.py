"""What the devices of a flavor say of themselves, and so what a claim can ask of them: names, types, sample values."""

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
LONGEST_DOMAIN = 63


@dataclass(frozen=True)
class Word:
    """An attribute or a capacity: its type, some of the values published, and the kinds of device that have it."""

    type: str
    values: tuple[Value, ...]
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Vocabulary:
    """By qualified name. ``profiles`` and ``products`` are the values of these attributes, all of them."""

    attributes: Mapping[str, Word]
    capacities: Mapping[str, Word]
    profiles: tuple[str, ...]
    products: tuple[str, ...]
    devices: tuple[str, ...]
    shareable: bool

    def document(self) -> dict[str, Any]:
        """As GET /offerings/{id}/vocabulary answers it; the driver's own names are short."""
        return {
            "devices": list(self.devices),
            "profiles": list(self.profiles),
            "attributes": _listed(self.attributes),
            "capacities": _listed(self.capacities),
            "shareable": self.shareable,
        }


def _listed(words: Mapping[str, Word]) -> list[dict[str, Any]]:
    return [
        {"name": short(name), "type": word.type, "values": list(word.values), "devices": list(word.devices)}
        for name, word in sorted(words.items(), key=lambda item: ("/" in short(item[0]), item[0]))
    ]


def of(devices: Iterable[Device]) -> Vocabulary:
    """The vocabulary of these devices."""
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
    return Vocabulary(
        attributes={name: _word(*entry) for name, entry in attributes.items()},
        capacities={name: _word(*entry) for name, entry in capacities.items()},
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


def _word(type_: str, values: set[Value], kinds: set[str]) -> Word:
    key = (lambda value: quantities.value(str(value))) if type_ == "quantity" else str
    ordered = sorted(values, key=key) if type_ != "int" else sorted(values, key=int)
    return Word(type_, tuple(ordered[:MAX_VALUES]), tuple(kind for kind in CLASSES if kind in kinds))


def problem(name: str, words: Mapping[str, Word], what: str) -> str:
    """Why no device can be asked for the named attribute or capacity; "" when it can."""
    domain, _, identifier = qualified(name).rpartition("/")
    if not _IDENTIFIER.fullmatch(identifier):
        return (
            "A name is a C identifier of at most 32 characters, after a domain and a slash if it is not the driver's."
        )
    if len(domain) > LONGEST_DOMAIN or not _DOMAIN.fullmatch(domain):
        return f"The part before the slash is a DNS domain of at most {LONGEST_DOMAIN} characters."
    if qualified(name) in words:
        return ""
    known = sorted(short(each) for each in words)
    close = get_close_matches(short(name), known, 1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"No device here publishes the {what} {short(name)}.{meant} There are: {', '.join(known)}."
