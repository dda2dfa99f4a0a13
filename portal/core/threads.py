"""How the threads of a process share the interpreter."""

import gc
import sys

SWITCH_S = 0.0005


def take_turns_often() -> None:
    """Have a thread that computes give way after half a millisecond, instead of Python's five.

    After each statement a thread waits for the interpreter while another one computes. For a page of twenty statements
    that would be up to a tenth of a second.
    """
    sys.setswitchinterval(SWITCH_S)


def keep_what_is_loaded() -> None:
    """Have no garbage collection look at what was imported again.

    A collection of everything takes 0.12 s with it, during which no thread of the process answers.
    """
    gc.collect()
    gc.freeze()
