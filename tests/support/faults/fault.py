"""A fault as tests put it: a block with so many requests in flight."""

from collections.abc import Callable
from contextlib import AbstractContextManager

IN_FLIGHT = 50
Fault = Callable[..., AbstractContextManager[None]]
