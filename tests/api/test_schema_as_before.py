"""The schema that is served is the one of the file in the repository, but for words; `make schema` writes it.

Who changes the schema sees in the file's difference what clients will notice.
"""

import os
from pathlib import Path

from tests.support import api_contract, schema_lines

FILE = Path(__file__).with_name("schema.json")


def test_the_schema_is_as_before_but_for_words():
    now = schema_lines.lines(api_contract.document())
    if os.environ.get("WRITE_SCHEMA"):
        FILE.write_text(now, encoding="utf-8")
    assert now.splitlines() == FILE.read_text(encoding="utf-8").splitlines()
