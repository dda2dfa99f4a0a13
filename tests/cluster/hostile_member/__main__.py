"""The hostile member's own process: reads its task as JSON, attacks, writes the tallies as JSON.

    python -m tests.cluster.hostile_member < task.json

It has a low priority: on one machine with the control plane the client's own work must not take CPU from the servers,
as a remote client's would not. What its requests cost the servers counts in full.
"""

import contextlib
import json
import logging
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.cluster.hostile_member import attacks, tally
from tests.cluster.hostile_member.attacks import Attack
from tests.cluster.hostile_member.calls import AttackContext
from tests.cluster.hostile_member.sender import MemberAccess, Sender
from tests.cluster.hostile_member.tally import Tally

NICENESS = 15
BEGUN = "attacking"
"""The first line that the process writes, after signing in."""


@dataclass(frozen=True)
class Task:
    """The input of the process. ``attacks`` are names separated by commas; all for an empty text."""

    seed: int
    seconds: float
    attacks: str
    access: MemberAccess
    context: AttackContext

    def text(self) -> str:
        return json.dumps(asdict(self))


def read_task(text: str) -> Task:
    document: dict[str, Any] = json.loads(text)
    context: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in document["context"].items()
    }
    return Task(**{**document, "access": MemberAccess(**document["access"]), "context": AttackContext(**context)})


def main() -> int:
    task = read_task(sys.stdin.read())
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # it warns of each connection beyond the pool
    yield_to_others()
    kinds = attacks.chosen(task.attacks)
    sender = Sender(task.access, sum(attack.threads for attack in kinds))
    sender.begin()
    print_line(BEGUN)
    tallies = run(task, kinds, sender)
    sender.close()
    print_line(json.dumps({name: one.document() for name, one in tallies.items()}))
    return 0


def run(task: Task, kinds: tuple[Attack, ...], sender: Sender) -> dict[str, Tally]:
    """Attack for ``task.seconds``, each thread of each kind independently."""
    until = time.monotonic() + task.seconds
    tallies: dict[str, list[Tally]] = {attack.name: [Tally() for _ in range(attack.threads)] for attack in kinds}

    def attack_on(attack: Attack, number: int) -> None:
        for call in attacks.calls_of_thread(attack, task.seed, number, task.context):
            if time.monotonic() >= until:
                return
            tallies[attack.name][number].add(call, *sender.send(attack.name, call))

    threads = [
        threading.Thread(target=attack_on, args=(attack, number), name=f"{attack.name} {number}")
        for attack in kinds
        for number in range(attack.threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: tally.merged(parts) for name, parts in tallies.items()}


def yield_to_others() -> None:
    """Lower the priority of this process, and of its session where the kernel schedules sessions against each
    other.
    """
    os.nice(NICENESS)
    with contextlib.suppress(OSError):  # a kernel without autogroups
        Path("/proc/self/autogroup").write_text(str(NICENESS), encoding="ascii")


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
