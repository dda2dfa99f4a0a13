"""The only error type of the local cluster: a sentence for the person at the terminal."""


class LocalError(Exception):
    """An error with its cause and its fix; printed without a traceback."""
