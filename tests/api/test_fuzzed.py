"""Requests that schemathesis derives from the schema are answered as the schema tells, whoever sends them.

    python -m pytest tests/api/test_fuzzed.py --long --fuzz-minutes 10 --fuzz-seed 3

Every check is on: tests/api/schemathesis.toml says which status is accepted besides, and why. Members and operators,
and with --long every role, send random requests and follow what answers refer to. With minutes, they send the edges of
every value too, which else only an operator does (tests/api/test_fuzzed_edges.py), and go on for that long.
"""

import pytest

from tests.support.fuzzing import ROLES, findings, there  # noqa: F401 (a fixture)
from tests.support.sizes import size

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("role", ROLES[: size(2, len(ROLES))])
def test_every_answer_is_as_the_schema_tells(role, there, live_server, tmp_path, pytestconfig):  # noqa: F811
    minutes = float(pytestconfig.getoption("fuzz_minutes"))
    bounds = ["--max-time", str(int(60 * minutes))] if minutes else ["--phases", "fuzzing,stateful"]
    seed = str(pytestconfig.getoption("fuzz_seed"))
    assert findings(live_server.url, there.secrets.get(role), seed, tmp_path, *bounds) == ""
