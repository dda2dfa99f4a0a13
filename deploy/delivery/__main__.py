"""`make delivery`: installs the chart with the image by Helm on a local control plane, and goes all the way with it.

Install, first sign-in, the tour, an upgrade under load, an uninstall that is refused while a GPU is held, and one that
is not. Pods of the chart run from the image (deploy.delivery.node).
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import requests

from deploy.delivery.container import Image
from deploy.delivery.journey import Journey, say, since
from deploy.delivery.node import Node
from deploy.local.errors import LocalError
from deploy.local.fleet.api import Api
from deploy.local.home import REPOSITORY
from deploy.local.kubectl import kubectl
from deploy.local.runner import Local

BUILD = REPOSITORY / "build"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.delivery", description=__doc__)
    parser.add_argument("--image", type=Path, default=BUILD / "image" / "image.tar", help="an OCI archive")
    parser.add_argument("--chart", type=Path, help="a packed chart; default: that of build/chart")
    parser.add_argument("--home", type=Path, help="where the control plane keeps its state; default: a new folder")
    parser.add_argument("--write", action="store_true", help="write the result as a page of the docs")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gpu-portal-delivery-"))
    began = time.monotonic()
    try:
        chart = arguments.chart or max((BUILD / "chart").glob("gpu-portal-*.tgz"), default=BUILD / "chart")
        if missing := [str(path) for path in (arguments.image, chart) if not path.is_file()]:
            raise LocalError(f"no {' and no '.join(missing)}: make image chart")
        local = Local(arguments.home or folder / "home", say)
        image = unpack(arguments.image, folder)
        with delivery(local, image, chart, folder) as journey:
            results = journey.play()
    except (LocalError, requests.RequestException, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"the delivery failed after {since(began)}: {error}\n{getattr(error, 'stderr', None) or ''}\n")
        sys.stderr.write(f"logs of the chart's pods are in {folder / 'pods'}\n")
        return 1
    shutil.rmtree(folder)
    results.append(("all of it", since(began)))
    text = page(results, image.config["Labels"]["org.opencontainers.image.revision"])
    print(text)
    if arguments.write:
        (REPOSITORY / "docs" / "operate" / "delivery.md").write_text(text, encoding="utf-8")
    return 0


def unpack(archive: Path, folder: Path) -> Image:
    """Return the image of an OCI archive, with its layers unpacked."""
    layout, root = folder / "layout", folder / "root"
    root.mkdir(parents=True)
    layout.mkdir()
    subprocess.run(["tar", "--extract", f"--file={archive}", f"--directory={layout}"], check=True)

    def blob(descriptor: dict[str, Any]) -> Path:
        return layout / "blobs" / descriptor["digest"].replace(":", "/")

    manifest = json.loads(blob(json.loads((layout / "index.json").read_text())["manifests"][0]).read_text())
    for layer in manifest["layers"]:
        subprocess.run(["tar", "--extract", f"--file={blob(layer)}", f"--directory={root}"], check=True)
    config = json.loads(blob(manifest["config"]).read_text())["config"]
    shutil.rmtree(layout)
    return Image(root, config)


@contextmanager
def delivery(local: Local, image: Image, chart: Path, folder: Path) -> Iterator[Journey]:
    """Start the control plane, the stores and the node, and end them afterwards."""
    local.up(("cluster", "stores"))
    home = local.home
    ports = [
        home.ports["apiserver"],
        *(int(re.findall(r":(\d+)/", url)[-1]) for url in (home.database_url(), home.redis_url())),
    ]
    node = Node(Api(home.kubeconfig), image, folder / "pods", home.ports["apiserver"], ports)
    try:
        kubectl(
            home, "delete", f"--kustomize={REPOSITORY / 'deploy' / 'cluster'}", "--ignore-not-found"
        )  # the chart has it
        node.start()
        yield Journey(local, node, chart, folder)
    finally:
        node.stop()
        local.down()


def page(results: list[tuple[str, str]], commit: str) -> str:
    """Return the page of the docs with the result of an image of a commit."""
    rows = "\n".join(f"| {name.replace('_', ' ')} | {found} |" for name, found in results)
    return f"""# What `make delivery` found

For the platform team: the chart and the image, installed by Helm on a local control plane as
[Install on your cluster](install.md) says. Written by `make delivery WRITE=1` on {datetime.now(UTC):%Y-%m-%d} with the
image of commit {commit[:12]}. Pods of the chart run from the image's own files,
non-root and read-only, with their own commands, Secrets, tokens and probes; kubelets and the network between pods are
simulated.

| step | result |
|---|---|
{rows}
"""


if __name__ == "__main__":
    sys.exit(main())
