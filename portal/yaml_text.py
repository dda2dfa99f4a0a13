"""Writes YAML that every reader takes for the same values: PyYAML, which reads YAML 1.1, Go's readers, which kubectl
has, and those of YAML 1.2. Pure.

What one of them takes for a number, a time, a truth or nothing (``1e3``, ``0o17``, ``2026-11-25``, ``y``, ``~``) begins
with no letter, or is one of ``WORDS`` (https://yaml.org/type/, YAML 1.2 §10.3). Such strings are quoted.
"""

import re
from typing import Any

import yaml

WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"))
PLAIN = re.compile(r"[A-Za-z/][ -~]*")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None if PLAIN.fullmatch(text) and text.lower() not in WORDS else "'" if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)
_Dumper.add_multi_representer(dict, _Dumper.represent_dict)


def to_yaml(content: Any) -> str:
    """Return a document of objects, lists, strings, numbers, truths and None, with its keys in their order."""
    return str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True))
