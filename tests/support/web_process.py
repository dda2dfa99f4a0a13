"""A web process of the portal on the test database, started as `deploy.local` and installs start it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.db import connection

from tests.services import free_port

COMMAND = ("gunicorn.app.wsgiapp", "portal.wsgi", "--config=python:portal.server.config", "--workers=1", "--threads=4")


@contextmanager
def web_process(*options: str, folder: Path | None = None) -> Iterator[int]:
    """Run gunicorn with four threads and these options, of the code in a folder if it is another; yield its port."""
    database = urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}")
    port = free_port()
    command = [sys.executable, "-m", *COMMAND, f"--bind=127.0.0.1:{port}", *options]
    environ = {**os.environ, "DATABASE_URL": urlunsplit(database)}
    with subprocess.Popen(command, env=environ, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            _until_it_answers(port)
            yield port
        finally:
            process.terminate()


def _until_it_answers(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as wire:
            try:
                wire.request("GET", "/livez")
                wire.getresponse().read()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return
