"""The edges of every value of every operation, as schemathesis derives them, are answered as the schema tells.

An operator sends them, whom no missing right stops. A file of its own, so that it runs beside tests/api/test_fuzzed.py.
"""

import pytest

from tests.support.fuzzing import findings, there  # noqa: F401 (a fixture)

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_edge_is_answered_as_the_schema_tells(there, live_server, tmp_path, pytestconfig):  # noqa: F811
    seed = str(pytestconfig.getoption("fuzz_seed"))
    assert findings(live_server.url, there.secrets["operator"], seed, tmp_path, "--phases", "coverage") == ""
