"""The edges of every value of every operation, as schemathesis derives them, are answered as the schema tells.

An operator sends them, whom no missing right stops: to every fourth path by default, and with --long to all. A file of
its own, so that it runs beside tests/api/test_fuzzed.py.
"""

import pytest

from tests.support import api_contract
from tests.support.fuzzing import findings, there  # noqa: F401 (a fixture)
from tests.support.sizes import size

pytestmark = pytest.mark.django_db(transaction=True)
PARTS = size(4, 1)


def test_every_edge_is_answered_as_the_schema_tells(there, live_server, tmp_path, pytestconfig):  # noqa: F811
    seed = str(pytestconfig.getoption("fuzz_seed"))
    paths = sorted(api_contract.document()["paths"])[int(seed) % PARTS :: PARTS]
    chosen = [word for path in paths for word in ("--include-path", path)]
    assert findings(live_server.url, there.secrets["operator"], seed, tmp_path, "--phases", "coverage", *chosen) == ""
