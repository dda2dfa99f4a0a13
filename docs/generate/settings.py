"""The page of settings, from portal/settings.py: each environment variable with its default and its comment."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from docs.generate.markdown import table
from portal.settings import BASE_DIR

HEAD = """# Settings

For operators: every environment variable that the portal reads, with its default and its meaning.
Written by `make reference` from `portal/settings.py`.

Set the same values for web, worker, beat and watcher. `NAME_FILE` may name a file that holds the value of `NAME`, as
Kubernetes mounts secrets; an empty variable counts as unset. A value that cannot be read stops the process, and its
name is in the message. Lists are separated by commas, yes and no are `1` and `0`.

"""
TYPES = {"required": "text", "strings": "list", "integer": "number", "boolean": "yes or no"}
_SECTION = re.compile(r"# --- (?P<title>.+?) -{3,}")


def page() -> str:
    source = (BASE_DIR / "portal" / "settings.py").read_text(encoding="utf-8")
    comments = {
        token.start[0]: token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    titles = {line: found["title"] for line, text in comments.items() if (found := _SECTION.match(text))}
    sections: dict[str, dict[str, tuple[str, str, str, str]]] = {}
    for call in _calls(ast.parse(source)):
        title = titles[max(line for line in titles if line <= call.lineno)]
        name = str(ast.literal_eval(call.args[0]))
        kind = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        row = (f"`{name}`", TYPES.get(kind, kind), _default(call, kind), _meaning(comments, source, call))
        rows = sections.setdefault(title, {})
        if kind == "required" or row[0] not in rows:
            rows[row[0]] = row
    head = ("variable", "type", "default", "meaning")
    return HEAD + "\n".join(
        f"## {title[:1].upper()}{title[1:]}\n\n{table(head, rows.values())}".rstrip("\n") + "\n"
        for title, rows in sections.items()
    )


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of `portal.env`, in their order."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "env"
    ]
    yield from sorted(found, key=lambda call: (call.lineno, call.col_offset))


def _default(call: ast.Call, kind: str) -> str:
    if kind == "required":
        return "required"
    if len(call.args) < 2:
        return "none"
    try:
        value = ast.literal_eval(call.args[1])
    except ValueError:
        return f"`{ast.unparse(call.args[1])}`"
    shown = ",".join(value) if isinstance(value, list) else str(int(value) if isinstance(value, bool) else value)
    return f"`{shown}`" if shown else "none"


def _meaning(comments: dict[int, str], source: str, call: ast.Call) -> str:
    """Return the comment at the end of the line, or else the lines of comment above it."""
    lines = source.splitlines()
    if text := comments.get(call.lineno):
        return text.removeprefix("#").strip()
    above: list[str] = []
    line = call.lineno - 1
    while lines[line - 1].startswith("# ") and not _SECTION.match(lines[line - 1]):
        above.insert(0, lines[line - 1].removeprefix("# "))
        line -= 1
    return " ".join(above)
