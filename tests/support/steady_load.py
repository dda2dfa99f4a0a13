"""Twenty requests a second through a load balancer, which knows what became of each of them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import requests
from urllib3.exceptions import NewConnectionError

PER_S = 20
THREADS = 16
Ask = Callable[[requests.Session, str], requests.Response]
"""Sends one request to the address of a web process."""


@dataclass
class Load:
    """What became of the requests: ``answers`` by status, and ``lost``, one line for each that had no answer, or one of
    5xx. Requests go to ``addresses`` in turn; where a connection is refused, to the next one, as proxies do.
    """

    addresses: list[str]
    answers: list[int] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    _local: threading.local = field(default_factory=threading.local)
    _turn: Iterator[int] = field(default_factory=count)

    def send(self, ask: Ask) -> None:
        turn, known = next(self._turn), list(self.addresses)
        for offset in range(len(known)):
            address = known[(turn + offset) % len(known)]
            try:
                answer = ask(self._session(), address)
            except requests.ConnectionError as error:
                if isinstance(getattr(error.args[0], "reason", None), NewConnectionError):
                    continue
                self.lost.append(f"{address}: {error}")
                return
            except requests.RequestException as error:
                self.lost.append(f"{address}: {error}")
                return
            self.answers.append(answer.status_code)
            if answer.status_code >= 500:
                self.lost.append(f"{address}: {answer.status_code} {answer.text[:200]}")
            return
        self.lost.append("no web process takes connections")

    def _session(self) -> requests.Session:
        """Return this thread's session, which keeps its connections."""
        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
        session: requests.Session = self._local.session
        return session


@contextmanager
def steady_load(addresses: Sequence[str], ask: Ask) -> Iterator[Load]:
    """Send ``PER_S`` requests a second until the block ends, and wait for their answers."""
    load, over = Load(list(addresses)), threading.Event()

    def pace(pool: ThreadPoolExecutor) -> None:
        due = time.monotonic()
        while not over.wait(max(0.0, due - time.monotonic())):
            pool.submit(load.send, ask)
            due += 1 / PER_S

    with ThreadPoolExecutor(THREADS) as pool:
        pacer = threading.Thread(target=pace, args=(pool,))
        pacer.start()
        try:
            yield load
        finally:
            over.set()
            pacer.join()
