"""The one error of the local cluster: a sentence for the person at the terminal."""


class LocalError(Exception):
    """What is missing and what to do about it; printed without a traceback."""
