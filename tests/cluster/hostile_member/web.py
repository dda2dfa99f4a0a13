"""A web process of the portal with the production limit of requests per person, as `portal/settings.py` has it.

The test stack's web process has a higher limit, since the other tests make many requests as one person.
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
    "ANONYMOUS_PROCESSOR_SECONDS_PER_MINUTE",
    "API_REQUESTS_PER_MINUTE",
    "PAGE_REQUESTS_PER_MINUTE",
    "PROCESSOR_SECONDS_PER_MINUTE",
    "PERSON_REQUESTS_AT_ONCE",
)


@contextmanager
def serving(local: Local, log: Path) -> Iterator[str]:
    """Yield the address of the web process, which ends with the block."""
    env = {key: value for key, value in (os.environ | local.env()).items() if key not in NOT_AS_IN_PRODUCTION}
    with closing(socket.create_server(("127.0.0.1", 0))) as listening, log.open("w") as out:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        bind = f"--bind=fd://{listening.fileno()}"
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn.app.wsgiapp", "portal.wsgi", "--config=python:portal.server.config", bind],
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
