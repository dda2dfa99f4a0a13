"""What reads bytes of strangers is in one table, has a bound, and takes little up to it."""

import ast
import gc
import re
import time
from pathlib import Path

import pytest

from tests import parsers
from tests.parsers import MEMBER, PARSERS, READ_BY_NOBODY, STRANGER

ROOT = Path(__file__).parents[2]
PARSING = {
    *("json.loads", "re.compile", "Lark", "b64decode", "signing.loads", "urlsplit", "parse_qs", "csv.DictReader"),
    *("csv.reader", "ip_address", "QueryDict", "yaml.safe_load", "literal_eval", "url_has_allowed_host_and_scheme"),
    *("date.fromisoformat", "datetime.fromisoformat", "re.sub", "re.split", "re.search", "re.match", "re.fullmatch"),
}
READS_PEOPLE = (
    "portal",
    "frontend",
    "quotas/costs",
    "allocations/claims/parse.py",
    "allocations/claims/device_schema.py",
)
"""What has to do with requests of people. The rest reads the database and the cluster."""
ELSEWHERE = ("/migrations/", "/management/", "portal/cli/", "portal/workqueue/")
SECONDS = {STRANGER: 0.5, MEMBER: 2.0}
ATTACKS = [
    pytest.param(each, attack, id=f"{each.what} {number}")
    for each in PARSERS
    for number, attack in enumerate(each.attacks)
]


def modules() -> list[Path]:
    found = [ROOT / name for name in READS_PEOPLE]
    files = [file for path in found for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
    return [file for file in files if not any(part in file.as_posix() for part in ELSEWHERE)]


def parses(file: Path) -> bool:
    calls = (node.func for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call))
    return any(ast.unparse(each) in PARSING for each in calls)


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def test_every_module_that_parses_is_in_the_table_or_reads_what_no_stranger_writes():
    parsing = {name_of(file) for file in modules() if parses(file)}
    named = {name for each in PARSERS for name in each.modules}
    assert parsing - named - set(READ_BY_NOBODY) == set()
    assert not [name for name in named | set(READ_BY_NOBODY) if not (ROOT / f"{name.replace('.', '/')}.py").exists()]


def test_every_header_that_is_read_is_in_the_table():
    pattern = r'headers(?:\.get\(|\[)"([A-Za-z-]+)"|META(?:\.get\(|\[)"HTTP_([A-Z_]+)"'
    found = {
        (one or other).replace("_", "-").lower()
        for file in modules()
        for one, other in re.findall(pattern, file.read_text("utf-8"))
        if not re.search(rf'response\["{one}"\]', file.read_text("utf-8"))
    }
    named = {name.lower() for each in PARSERS for name in re.findall(r"`([A-Za-z-]+)`", each.what)}
    assert "if-none-match" in found
    # those that say how a body is sent and whether another request follows, and those that an answer gets
    assert found - named - {"transfer-encoding", "connection", "retry-after", "date"} == set()


def test_the_page_has_the_table():
    assert parsers.PAGE.read_text("utf-8") == parsers.page()


def seconds(parser: parsers.Parser, value: object) -> float:
    """Return the processor time of reading it, whatever comes of it: the best of two. Garbage collections look at all
    that the tests hold, and are left out.
    """
    took = []
    gc.disable()
    try:
        for _ in range(2):
            start = time.thread_time()
            parsers._tried(parser.read, value)
            took.append(time.thread_time() - start)
    finally:
        gc.enable()
    return min(took)


@pytest.mark.parametrize(("parser", "attack"), ATTACKS)
def test_what_is_read_takes_little_up_to_its_bound_and_no_more_than_in_proportion(parser, attack):
    whole, quarter = (seconds(parser, attack(size)) for size in (parser.size, parser.size // 4))
    assert whole < SECONDS[parser.whose]
    assert whole < 12 * quarter + 0.1  # four times the size; quadratic would be sixteen times
