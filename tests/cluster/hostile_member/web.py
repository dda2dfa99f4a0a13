"""A web process of the portal as in production: requests of one person are limited as `portal/settings.py` has it.

That of the test stack is not, since the other tests ask much as one person.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import requests

from deploy.local.home import REPOSITORY
from deploy.local.runner import Local
from tests.support.cluster.waiting import eventually

NOT_AS_IN_PRODUCTION = (
    "API_REQUESTS_PER_MINUTE",
    "PAGE_REQUESTS_PER_MINUTE",
    "PROCESSOR_SECONDS_PER_MINUTE",
    "PERSON_REQUESTS_AT_ONCE",
)
SIZE = ("--workers=2", "--threads=4", "--keep-alive=75")
"""As in the README."""


@contextmanager
def serving(local: Local, log: Path) -> Iterator[str]:
    """The address of the web process, which ends with the block."""
    env = {key: value for key, value in (os.environ | local.env()).items() if key not in NOT_AS_IN_PRODUCTION}
    with closing(socket.create_server(("127.0.0.1", 0))) as listening, log.open("w") as out:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        bind = f"--bind=fd://{listening.fileno()}"
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn.app.wsgiapp", "portal.wsgi", bind, *SIZE],
            cwd=REPOSITORY,
            env=env | {"LOG_LEVEL": "INFO"},
            stdout=out,
            stderr=out,
            pass_fds=[listening.fileno()],
        )
    try:
        eventually(lambda: requests.get(f"{url}/livez", timeout=5).ok, requests.RequestException, within_s=60)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)
