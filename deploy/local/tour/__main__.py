"""python -m deploy.local.tour [--home .local]: runs the tour on a running demo; exits 0, or 1 at the first failure.

It holds GPUs through both backends, runs its own pods on them, triggers refusals, queues a request, reads the costs,
releases everything, and checks with the API server that nothing is left.
"""

import argparse
import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import requests

from deploy.local.build import build
from deploy.local.errors import LocalError
from deploy.local.home import REPOSITORY
from deploy.local.tour import acts
from deploy.local.tour.acts import PROJECT, Tour
from deploy.local.tour.kube import Kubectl
from deploy.local.tour.proof import nothing_left
from deploy.local.tour.rest import Portal

MEMBER = "vision-member"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.local.tour", description=__doc__)
    parser.add_argument("--home", type=Path, default=REPOSITORY / ".local", help="default: .local")
    parser.add_argument("--url", default="", help="default: that of demo.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpu-portal-tour-") as folder:
        try:
            tour_of(arguments.home, arguments.url, Path(folder))
        except LocalError as error:
            sys.stderr.write(f"the tour failed: {error}\n")
            return 1
        except requests.RequestException as error:
            sys.stderr.write(f"the tour failed, the portal does not answer: {error}\n")
            return 1
    return 0


def tour_of(home: Path, url: str, folder: Path) -> None:
    """Run the whole tour; release its allocations even if it fails midway."""
    file = home / "demo.json"
    if not file.exists():
        raise LocalError(f"{file} is missing; `make up` starts the demo and writes it")
    demo = json.loads(file.read_text(encoding="utf-8"))
    admin = Kubectl(build() / "kubectl", Path(demo["kubeconfig"]), folder / "cache")
    tour = Tour(Portal(url or demo["url"], demo["tokens"][MEMBER]), admin, folder, say)
    try:
        play(tour)
    finally:
        for id_ in tour.allocation_ids:
            with suppress(LocalError, requests.RequestException):
                tour.portal.post(f"allocations/{id_}/release")
    names = [tour.portal.get(f"allocations/{id_}")["name"] for id_ in tour.allocation_ids]
    title("Proof from the API server that nothing is left")
    for sentence in nothing_left(admin, demo["namespaces"][PROJECT], names):
        say(sentence)
    title("The tour is complete")


def play(tour: Tour) -> None:
    title(f"What {MEMBER} is offered")
    acts.catalogue(tour)
    title(f"A hold of 2 {tour.by_claim} by DRA")
    by_claim = acts.hold_by_claim(tour)
    title(f"A hold of 1 {acts.DEVICE_PLUGIN} by device plugin")
    by_count = acts.hold_by_count(tour)
    title("A pod of one's own on the very devices held, and the same pod without its label")
    acts.own_pod_by_claim(tour, by_claim)
    title("The same by device plugin")
    acts.own_pod_by_count(tour, by_count)
    title("A refusal")
    acts.refusal(tour)
    title("A hold that has to queue, and is admitted when another is released")
    acts.queue(tour, by_count)
    title("What each costs")
    acts.costs(tour)
    title("All is given back")
    acts.release(tour)


def title(words: str) -> None:
    say(f"\n== {words}")


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
