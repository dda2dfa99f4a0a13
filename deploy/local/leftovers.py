"""Ends processes of an earlier run whose supervisor is gone; a variable in their environment identifies them.

PR_SET_PDEATHSIG ends most children of a killed supervisor; processes that those started (pool workers, for example) may
survive it.
"""

import os
import time
from pathlib import Path

import psutil

MARK = "GPU_PORTAL_SUPERVISED"


def mark(root: Path) -> dict[str, str]:
    """Return the environment that marks a supervised process of the home at `root`."""
    return {MARK: str(root)}


def find(root: Path) -> list[psutil.Process]:
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    others = (process for process in psutil.process_iter() if process.pid not in own)
    return [process for process in others if _is_marked(process, root)]


def end(root: Path, within_s: float = 10.0) -> list[int]:
    """Send SIGKILL to every leftover process until none is left; return their pids."""
    ended: set[int] = set()
    deadline = time.monotonic() + within_s
    while (found := find(root)) and time.monotonic() < deadline:
        for process in found:
            ended.add(process.pid)
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(found, timeout=1)
    return sorted(ended)


def _is_marked(process: psutil.Process, root: Path) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == str(root)
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        return False
