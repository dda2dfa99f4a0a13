"""A fault in a test: a block with a number of requests in flight."""

from collections.abc import Callable
from contextlib import AbstractContextManager

IN_FLIGHT = 50
Fault = Callable[..., AbstractContextManager[None]]
