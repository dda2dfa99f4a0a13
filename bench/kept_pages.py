"""The WSGI application of ``bench.cost_pages``: the portal, and answers of it that were kept as files.

A file in the folder KEPT has the headers and the body of an answer as JSON; it is served at PATH and its name.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from portal.wsgi import application as portal

KEPT = "BENCH_KEPT_PAGES"
PATH = "/kept-page/"


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if not path.startswith(PATH):
        answer: Iterable[bytes] = portal(environ, start_response)
        return answer
    kept: dict[str, Any] = json.loads((Path(os.environ[KEPT]) / path.removeprefix(PATH)).read_text())
    start_response("200 OK", [(name, value) for name, value in kept["headers"]])
    return [kept["body"].encode()]
