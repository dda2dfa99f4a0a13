"""How the threads of a process share the interpreter."""

import sys

SWITCH_S = 0.0005


def share_often() -> None:
    """Have a thread that computes give way after half a millisecond, instead of Python's five.

    A thread that waits for PostgreSQL has to wait for the interpreter after each of its statements, so of twenty
    statements each would cost up to five milliseconds while another thread computes.
    """
    sys.setswitchinterval(SWITCH_S)
