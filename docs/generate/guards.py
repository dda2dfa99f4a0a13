"""The page of admission policies, from deploy/cluster/policies: what each matches, and what people are told."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from docs.generate.markdown import table
from portal.settings import BASE_DIR

FOLDER = BASE_DIR / "deploy" / "cluster" / "policies"
HEAD = """# Admission policies

For everyone whose object was refused, and for administrators who review the policies: every policy, what it matches
and what people are told. Written by `make reference` from `deploy/cluster/policies`. What the guards achieve
together, and whom they except, is in [guards](guards.md).

"""
VERBS = {"ValidatingAdmissionPolicy": "refuses or warns", "MutatingAdmissionPolicy": "changes"}


def page() -> str:
    order = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    return (HEAD + "\n".join(_section(name) for name in order)).rstrip("\n") + "\n"


def _section(name: str) -> str:
    source = (FOLDER / name).read_text(encoding="utf-8")
    # With the loader of C, which reads the same in a tenth of the time.
    documents = [one for one in yaml.load_all(source, Loader=yaml.CSafeLoader) if one]
    policies = [one for one in documents if one["kind"] in VERBS]
    text = re.sub(r"\bdocs/adr/(\d+)[\w-]*\.md", r"decision \1", _comment(source))
    lines = [f"## {name}", "", text, ""] if text else [f"## {name}", ""]
    for policy in policies:
        lines += [f"`{policy['metadata']['name']}` {VERBS[policy['kind']]}: {_matched(policy['spec'])}.", ""]
        rows = [(one,) for one in _messages(policy["spec"])]
        if rows:
            lines.append(table(("message",), rows))
    return "\n".join(lines).rstrip("\n") + "\n"


def _comment(source: str) -> str:
    """Return the comment at the head of the file, as paragraphs."""
    head: list[str] = []
    for line in source.splitlines():
        if not line.startswith("#"):
            break
        head.append(line.removeprefix("#").strip())
    return "\n".join(head).strip()


def _matched(spec: dict[str, Any]) -> str:
    rules = spec.get("matchConstraints", {}).get("resourceRules", [])
    return "; ".join(f"{', '.join(rule['operations'])} of {', '.join(rule['resources'])}" for rule in rules)


def _messages(spec: dict[str, Any]) -> Iterator[str]:
    for validation in spec.get("validations", []):
        if message := validation.get("message"):
            yield message
        elif expression := validation.get("messageExpression"):
            yield f"`{' '.join(expression.split())}`"
