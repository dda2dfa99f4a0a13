"""SQL statements by process, counted in PostgreSQL's own log: evidence that a client's own counts are not."""

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg

from deploy.local.home import Home

SETTINGS = {"log_statement": "all", "log_line_prefix": "of=%a "}
STATEMENT = re.compile(rb"^of=(?P<process>.*?) LOG:  (?:statement|execute [^:]*):\s+(?P<text>.*)$", re.MULTILINE)
PROCESSES = ("web", "worker", "watcher")
RECONCILE = re.compile(rb"^of=gpu-portal-worker DETAIL: .*'local/allocation:", re.MULTILINE)
"""The target, as a value of the prepared statement with which each reconcile of an allocation begins
(``allocations.reconcile.allocation_state``).
"""


class Statement(NamedTuple):
    """The first line of an SQL statement, and the ``application_name`` of the process that sent it."""

    process: str
    text: str


class StatementLog:
    """The log of a local cluster's PostgreSQL. ``start`` and ``since`` work while the block of ``counting`` runs."""

    def __init__(self, home: Home) -> None:
        self._path, self._owner_url = home.log("postgres"), home.owner_url()

    @contextmanager
    def counting(self) -> Iterator["StatementLog"]:
        """Log every statement until the block ends."""
        self._set(*(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in SETTINGS.items()))
        try:
            self._until_logged()
            yield self
        finally:
            self._set(*(f"ALTER SYSTEM RESET {name}" for name in SETTINGS))

    def position(self) -> int:
        """Return the present size of the log in bytes."""
        return self._path.stat().st_size

    def since(self, position: int) -> Counter[Statement]:
        """Return the statements logged since a position, BEGIN and COMMIT included."""
        return _statements(self._read(position))

    def by_process(self, position: int) -> dict[str, int]:
        """Return the numbers of statements since a position: of web, worker and watcher, their sum (``all``), and of
        those with which the worker begins to reconcile an allocation (``reconciles``).
        """
        log = self._read(position)
        found = _statements(log)
        numbers = {name: sum(n for s, n in found.items() if s.process == f"gpu-portal-{name}") for name in PROCESSES}
        reconciles = len(RECONCILE.findall(log))
        return {**numbers, "all": sum(numbers.values()), "reconciles": reconciles}

    def _read(self, position: int) -> bytes:
        with self._path.open("rb") as log:
            log.seek(position)
            return log.read()

    def _set(self, *statements: str) -> None:
        with psycopg.connect(self._owner_url, autocommit=True) as connection:
            for statement in (*statements, "SELECT pg_reload_conf()"):
                connection.execute(statement.encode())

    def _until_logged(self) -> None:
        start, deadline = self.position(), time.monotonic() + 30
        while not any(s.process == "statement-log" for s in self.since(start)):
            if time.monotonic() > deadline:
                raise TimeoutError("PostgreSQL does not log statements")
            with psycopg.connect(self._owner_url, application_name="statement-log") as connection:
                connection.execute("SELECT 1")


def _statements(log: bytes) -> Counter[Statement]:
    found = STATEMENT.finditer(log)
    return Counter(Statement(m["process"].decode(), m["text"].decode().strip()) for m in found)
