"""Text of people within a sentence of the portal: in quotation marks that it cannot end itself. Pure.

What stands between the marks is shown as it is, and never read for meaning: a time in it stays as it was typed.
"""

OPEN, CLOSE = "“", "”"
QUOTED = f"{OPEN}[^{CLOSE}]*{CLOSE}?"
"""A pattern of what ``quoted`` returns, also where a sentence was cut off within it."""
_INNER = str.maketrans({OPEN: '"', CLOSE: '"'})


def quoted(text: str) -> str:
    """Return the text in quotation marks; such marks within it become straight ones."""
    return f"{OPEN}{text.translate(_INNER)}{CLOSE}"
