"""CEL string literals, by which all text enters an expression. Pure.

A missing attribute would abort the whole allocation (Kubernetes resource.k8s.io/v1), so expressions test for it first.
Source: CEL language definition, lexis.
"""

from quotas.catalog.nvidia import DRA_DRIVER

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_.:/+@=,;()[]{}<>!#$%&*?^|~")


def text(value: str) -> str:
    """Return a string literal of plain ASCII; raise ValueError for half a surrogate pair, which is no character."""
    return '"' + "".join(character if character in _PLAIN else _escaped(character) for character in value) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError("a half of a surrogate pair is no character")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def equals(attribute: str, value: str) -> str:
    """Return CEL that is true for devices of NVIDIA's driver whose attribute has that text."""
    attributes = f'device.attributes["{DRA_DRIVER}"]'
    return f'"{attribute}" in {attributes} && {attributes}.{attribute} == {text(value)}'
