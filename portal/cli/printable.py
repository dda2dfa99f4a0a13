"""Text of other people for a terminal: on one line, and without characters that control the terminal. Pure."""

import json
import re
from typing import Any

LINES = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, which set titles and colours or move the cursor, those that turn the direction of text
(Unicode UAX #9), and halves of characters, which no terminal can show.
"""


def is_utf8(text: str) -> bool:
    """Return whether the text can be sent: a byte of a command line that is not UTF-8 is half a character."""
    return not re.search(r"[\ud800-\udfff]", text)


def one_line(text: str) -> str:
    """Return the text on one line, with control characters written as Python does: ``\\x1b``."""
    return CONTROLS.sub(lambda found: ascii(found[0])[1:-1], LINES.sub(" ", text))


def one_lines(value: Any) -> Any:
    """Return a JSON value of which each string is ``one_line``."""
    match value:
        case str():
            return one_line(value)
        case list():
            return [one_lines(each) for each in value]
        case dict():
            return type(value)({one_line(key): one_lines(each) for key, each in value.items()})
    return value


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """Return the value as JSON, in which control characters are escaped, as JSON can."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return CONTROLS.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)
