"""JSON of the API server as the client reads it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocations.cluster.client import decoded


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"a\u0000b"', "ab"),
        (rb'"\u0000\u0000"', ""),
        (rb'"\\u0000"', r"\u0000"),
        (rb'"\\\u0000"', "\\"),
        (rb'{"kind": "Job\u0000", "\u0000name": "a"}', {"kind": "Job", "name": "a"}),
    ],
)
def test_a_nul_character_is_left_out_since_postgresql_stores_none(text: bytes, value: object):
    assert decoded(text) == value


@given(st.text(st.sampled_from('\x00\\u0"\n\u00e9\U0001f600')))
def test_every_other_character_stays(text: str):
    assert decoded(json.dumps(text).encode()) == text.replace("\x00", "")
