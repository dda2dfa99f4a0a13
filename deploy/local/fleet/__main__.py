"""python -m deploy.local.fleet: publish the simulated hardware, or change it by command.

    python -m deploy.local.fleet --kubeconfig F               publish until interrupted
    python -m deploy.local.fleet --kubeconfig F --extra h100=64     more nodes of a kind (0 removes them)
    python -m deploy.local.fleet --kubeconfig F --extra h200 --extra l4-mps     one node each, of kinds that are off
    python -m deploy.local.fleet --kubeconfig F node down h100-0    NotReady, until: node up h100-0
    python -m deploy.local.fleet --kubeconfig F taint h100-0/gpu-3 --xid 79    until: heal h100-0/gpu-3

Only the first form keeps running; the others store the change in the cluster for it, and return.
"""

import argparse
import logging
import os
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import urllib3

from deploy.local.fleet import publisher, spec, state, switches
from deploy.local.fleet.api import Api, ApiError
from deploy.local.fleet.slices import Taint
from quotas.catalog.nvidia import DRA_DRIVER

DOWN = "node-not-ready.stage.kwok.x-k8s.io"


def main() -> None:
    arguments = parser().parse_args()
    try:
        arguments.run(arguments)
    except (ApiError, OSError, ValueError, urllib3.exceptions.HTTPError) as error:
        sys.exit(str(error))


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m deploy.local.fleet", description="The simulated GPU hardware.")
    top.add_argument("--kubeconfig", type=Path, default=os.environ.get("KUBECONFIG"), help="default: $KUBECONFIG")
    top.add_argument("--fleet", type=Path, default=spec.FLEET_FILE, help="default: deploy/local/fleet.yaml")
    top.add_argument("--extra", action="append", metavar="KIND[=N]", help="so many nodes more; 1 unless said")
    top.set_defaults(run=publish_or_extend)
    commands = top.add_subparsers(title="commands")

    node = commands.add_parser("node", help="take a node down, or bring it up again")
    node.add_argument("direction", choices=["down", "up"])
    node.add_argument("name")
    node.set_defaults(run=turn_node)

    taint = commands.add_parser("taint", help="publish a device as unhealthy, as the driver's health monitor does")
    taint.add_argument("device", type=_node_and_device, metavar="NODE/DEVICE")
    taint.add_argument("--xid", type=int, default=79, help="the error to report; 79: fallen off the bus")
    taint.add_argument("--effect", choices=["None", "NoSchedule", "NoExecute"], default="NoSchedule")
    taint.set_defaults(run=taint_device)

    heal = commands.add_parser("heal", help="take all taints from a device")
    heal.add_argument("device", type=_node_and_device, metavar="NODE/DEVICE")
    heal.set_defaults(run=heal_device)
    return top


def publish_or_extend(arguments: argparse.Namespace) -> None:
    if arguments.extra:
        extra = switches.extra_nodes(arguments.extra)
        spec.load(arguments.fleet).with_extra(extra)
        state.change(Api(_kubeconfig(arguments)), lambda current: state.with_extra(current, extra))
        return
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    publisher.run(_kubeconfig(arguments), arguments.fleet, stop)


def turn_node(arguments: argparse.Namespace) -> None:
    """Set or remove the label by which KWOK's stages turn the node NotReady, or Ready again."""
    label = "true" if arguments.direction == "down" else None
    Api(_kubeconfig(arguments)).merge(f"{publisher.NODES}/{arguments.name}", {"metadata": {"labels": {DOWN: label}}})


def taint_device(arguments: argparse.Namespace) -> None:
    taint: Taint = {
        "key": f"{DRA_DRIVER}/xid",
        "value": str(arguments.xid),
        "effect": arguments.effect,
        "timeAdded": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    node, device = arguments.device
    state.change(Api(_kubeconfig(arguments)), lambda current: state.with_taint(current, node, device, taint))


def heal_device(arguments: argparse.Namespace) -> None:
    node, device = arguments.device
    state.change(Api(_kubeconfig(arguments)), lambda current: state.healed(current, node, device))


def _kubeconfig(arguments: argparse.Namespace) -> Path:
    if arguments.kubeconfig is None:
        raise ValueError("name the cluster: --kubeconfig FILE, or KUBECONFIG in the environment")
    return Path(arguments.kubeconfig)


def _node_and_device(text: str) -> tuple[str, str]:
    node, _, device = text.partition("/")
    if not node or not device:
        raise argparse.ArgumentTypeError(f"{text!r} is not NODE/DEVICE, e.g. h100-0/gpu-3")
    return node, device


if __name__ == "__main__":
    main()
