"""Finds fields and permissions without an entry in the tables, and entries without a field or permission. Pure."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from tests.cluster.rights.schema import Body, Right, Schema, properties, reference, short

FOLDER = "tests/cluster/rights"


@dataclass(frozen=True)
class FieldPath:
    """A field below a body: the names on its path, and the type that holds each of them."""

    names: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def addresses(self) -> list[str]:
        """Return the addresses by which an entry may name it, the most precise first: ``Job.spec.template``,
        ``JobSpec.template``.
        """
        return [f"{kind}.{'.'.join(self.names[at:])}" for at, kind in enumerate(self.types) if kind]

    @property
    def address(self) -> str:
        return self.addresses[-1]

    @property
    def path(self) -> str:
        return self.addresses[0]


@dataclass
class Differences:
    """The result of a comparison.

    ``missing``: address of a field without an entry → where it was first found. ``vague``: entries of fields that have
    fields of their own. ``unused``: entries that match no field.
    """

    missing: dict[str, str] = field(default_factory=dict)
    vague: dict[str, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        sentences = [
            f"Tenants may write {address} ({path}), and no entry in {FOLDER} names it. Read what they could do with "
            "it, add a guard where it hurts others, and an entry with its verdict."
            for address, path in self.missing.items()
        ]
        sentences += [
            f"{address} has fields of its own ({path}), and its entry in {FOLDER} does not say whole: true. Write an "
            "entry for each of them, or say so if all that is below is harmless."
            for address, path in self.vague.items()
        ]
        sentences += [
            f"The entry {address} in {FOLDER} is of no field that tenants may write, or an entry above covers it. "
            "Take it out."
            for address in self.unused
        ]
        return sentences


def compare(bodies: Iterable[Body], entries: Mapping[str, bool]) -> Differences:
    """Compare the entries (address → whether it covers everything below) with all fields of the bodies.

    An address with a key, ``ConfigMap.data{key}``, is about one key of a map: the map itself needs an entry.
    """
    differences, used = Differences(), set[str]()
    for body in bodies:
        _visit(body, FieldPath((), ()), body.schema, (body.name,), entries, differences, used)
    differences.unused = sorted(address for address in entries if address.partition("{")[0] not in used)
    return differences


def _visit(
    body: Body,
    field_path: FieldPath,
    schema: Schema,
    kinds: tuple[str, ...],
    entries: Mapping[str, bool],
    differences: Differences,
    used: set[str],
) -> None:
    for name, inner in sorted(properties(schema).items()):
        inner_path = FieldPath((*field_path.names, name), (*field_path.types, kinds[-1]))
        named = reference(inner)
        kind = short(named) if named else ""
        target = body.schemas[named] if named else inner
        has_fields = bool(properties(target)) and not (kind and kind in kinds)
        entry = next((address for address in inner_path.addresses if address in entries), None)
        if entry:
            used.add(entry)
            if has_fields and not entries[entry]:
                differences.vague.setdefault(entry, inner_path.path)
        elif has_fields:
            _visit(body, inner_path, target, (*kinds, kind), entries, differences, used)
        else:
            differences.missing.setdefault(inner_path.address, inner_path.path)


def compare_rights(granted: Set[Right], entries: Set[str]) -> list[str]:
    """Return sentences about permissions of the role without an entry, and entries without a permission."""
    held = {str(right) for right in granted}
    return [
        f"Tenants may {right}, and no entry in {FOLDER}/role.yaml says so. Read what they could do with it, and with "
        "each field that it lets them write, and add an entry with its verdict."
        for right in sorted(held - entries)
    ] + [
        f"The entry {right} in {FOLDER}/role.yaml is of no right of tenants. Take it out."
        for right in sorted(entries - held)
    ]
