"""The access matrix: the routes of the portal, and each role's answer to each of them.

`docs/evidence/access.md` has it, for readers and tests; `make matrix` writes it. A new route appears as a difference.
Only a field or parameter with a new name needs a line of its own, and the test says where.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from django.urls import URLPattern, URLResolver, get_resolver

from docs.generate.markdown import rows_of

GUIDE = Path(__file__).parents[2] / "docs" / "evidence" / "access.md"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROLES = {
    "anonymous": "nobody signed in",
    "no team": "signed in, in no team",
    "viewer": "viewer of the team",
    "member": "member of the team",
    "lead": "lead of the team",
    "other lead": "lead of another team",
    "auditor": "auditor",
    "operator": "operator",
    "lead (reading)": "lead, by a token with scope read alone",
    "operator (reading)": "operator, by a token with scope read alone",
}
ALLOWED = "allowed"
SIGN_IN = "sign in"
Row = dict[str, str | int]
Table = dict[str, Row]

HEAD = """# Who may do what

Every address, and what each role is answered. Made by `make matrix` from requests that were really sent
(`tests/api/test_matrix.py`); that test fails where an answer differs or an address is missing here.

The team is the one that owns the thing in question.

| answer | meaning |
|---|---|
| allowed | shown, or done |
| sign in | sent to the page that asks for name and password |
| 400 | the form does not offer this person what was chosen |
| 401 | no token, or for `/metrics` not [its own](../operate/sign-in.md#metrics) |
| 403 | the person sees it, but the role or the token's scope is missing |
| 404 | it is not there, or not for this person to know of |
| 409, 503 | allowed, but not possible where it was tried: nothing was held, or there was no cluster |

A token never does more than its person, and pages take none.
"""


def routes() -> Iterator[str]:
    """Return path patterns of REST v1, of the pages, of the probes, and the admin's index."""
    for pattern in _leaves(get_resolver().url_patterns, ""):
        if pattern.startswith("/admin/"):
            if pattern == "/admin/":
                yield pattern
        elif "(?P" not in pattern:
            yield pattern


def _leaves(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[str]:
    for entry in patterns:
        path = prefix + str(entry.pattern) if prefix else f"/{entry.pattern}"
        if isinstance(entry, URLResolver):
            yield from _leaves(entry.url_patterns, path)
        else:
            yield path


def is_rest(pattern: str) -> bool:
    return pattern.startswith("/api/v1/")


def read() -> Table:
    rows = rows_of(GUIDE.read_text(encoding="utf-8"), "address")
    return {row.pop("address").strip("`"): {role: _answer(words) for role, words in row.items()} for row in rows}


def _answer(words: str) -> str | int:
    return int(words) if words.isdecimal() else words


def write(table: Table) -> None:
    GUIDE.write_text(as_guide(table), encoding="utf-8")


def as_guide(table: Mapping[str, Row]) -> str:
    parts = {
        "REST": [name for name in table if " /api/v1/" in name],
        "Pages and probes": [name for name in table if " /api/v1/" not in name],
    }
    lines = [HEAD]
    for title, names in parts.items():
        roles = [role for role in ROLES if any(role in table[name] for name in names)]
        lines += [f"\n## {title}\n", f"| address | {' | '.join(roles)} |", f"|---|{'---|' * len(roles)}"]
        lines += [f"| `{name}` | {' | '.join(str(table[name][role]) for role in roles)} |" for name in names]
    return "\n".join(lines) + "\n"
