"""Text of people within a sentence of the portal: in quotation marks that it cannot end itself. Pure.

What stands between the marks is shown as it is, and never read for meaning: a time in it stays as it was typed.
"""

import re

OPEN, CLOSE = "“", "”"
QUOTED = f"{OPEN}[^{CLOSE}]*{CLOSE}?"
"""A pattern of what ``quoted`` returns, also where a sentence was cut off within it."""
NAME = re.compile(r"[\w./:@+-]+")
_INNER = str.maketrans({OPEN: '"', CLOSE: '"'})


def quoted(text: str) -> str:
    """Return the text in quotation marks; such marks within it become straight ones."""
    return f"{OPEN}{text.translate(_INNER)}{CLOSE}"


def named(text: str) -> str:
    """Return what a person typed as a name: as it is if it could be one, else in quotation marks."""
    return text if NAME.fullmatch(text) else quoted(text)
