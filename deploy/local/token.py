"""Renews the portal's token: a bound token of its service account, renewed at half its lifetime.

A real cluster provides it to a pod as a projected volume; the portal rereads the file.

    python -m deploy.local.token --home FOLDER
"""

import argparse
import json
import sys
import time
from pathlib import Path

from deploy.local.build import build
from deploy.local.errors import LocalError
from deploy.local.home import Home, open_home, write_whole
from deploy.local.kubectl import kubectl

NAMESPACE, ACCOUNT = "gpu-portal", "portal"
LIFE_S = 3600
RETRY_S = 2.0


def mint(home: Home) -> None:
    """Create a token by TokenRequest and write it."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFE_S},
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    answer = kubectl(home, "create", f"--raw={path}", "--filename=-", stdin=json.dumps(request))
    write_whole(home.portal_token, json.loads(answer)["status"]["token"])


def keep(home: Home) -> None:
    while True:
        try:
            mint(home)
        except LocalError as error:
            sys.stderr.write(f"{error}\n")
            time.sleep(RETRY_S)
        else:
            time.sleep(LIFE_S / 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m deploy.local.token")
    parser.add_argument("--home", type=Path, required=True)
    folder = parser.parse_args().home
    keep(open_home(folder, build()))
