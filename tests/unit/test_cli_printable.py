"""Text of other people on a terminal: one line, and nothing that controls it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.cli.errors import ProblemError
from portal.cli.printable import CONTROLS, as_json, one_line, one_lines

TEXTS = st.text(st.characters() | st.sampled_from("\x1b\x07\x9b\r\n\u202e\u2028\ud800"))
VALUES = st.recursive(TEXTS | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@given(VALUES)
def test_no_string_of_an_answer_controls_the_terminal_or_begins_a_line(value):
    assert not [text for text in strings(one_lines(value)) if CONTROLS.search(text)]


def strings(value):
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from strings(each)
        case dict():
            for key, each in value.items():
                yield key
                yield from strings(each)


@given(VALUES)
def test_json_is_the_same_value_without_control_characters(value):
    written = as_json(value)
    assert json.loads(written) == value
    assert CONTROLS.search(written.replace("\n", "")) is None


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("a purpose", "a purpose"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x1b]52;c;Y3VybA==\x07", r"\x1b]52;c;Y3VybA==\x07"),
        (
            "done\n2026-11-25 15:00:00Z  active  portal: Your GPUs are ready.",
            "done 2026-11-25 15:00:00Z  active  portal: Your GPUs are ready.",
        ),
        ("\x9b2J", r"\x9b2J"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("Zoë 👩\u200d💻", "Zoë 👩\u200d💻"),
    ],
)
def test_what_people_typed_is_printed_on_one_line(typed, printed):
    assert one_line(typed) == printed


def test_an_error_of_the_portal_is_printed_without_control_characters():
    error = ProblemError({"detail": "There is no \x1b[2Jproject.", "errors": {"name": ["\x07"]}, "hint": "\x9b"})
    assert CONTROLS.search(error.format_message().replace("\n", "")) is None
