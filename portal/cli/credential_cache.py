"""Kubernetes tokens that `gpu-portal credential` keeps, so that kubectl does not ask the portal each time.

A file for each portal, token of the portal and cluster, in `gpu-portal` in `XDG_CACHE_HOME` (default `~/.cache`),
readable by its owner only. A token is used until 80 % of its life, counted by this machine's clock.
"""

import hashlib
import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from portal.cli.config import Config
from portal.cli.files import folder

USED_FOR = 0.8
"""Part of a token's life after which a new one is asked for."""


def file(portal: Config, cluster: str) -> Path:
    """Return where the token is kept. Another token of the portal, which may be another person's, has another file."""
    key = hashlib.sha256("\n".join((portal.url, portal.token, cluster)).encode()).hexdigest()[:32]
    return folder("XDG_CACHE_HOME", ".cache") / f"credential-{key}.json"


def load(path: Path) -> dict[str, Any] | None:
    """Return the kept answer of `POST /credentials`; None if there is none to use any longer."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        used_until = datetime.fromisoformat(kept["used_until"])
        given: dict[str, Any] = kept["credential"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return given if datetime.now(UTC) < used_until else None


def save(path: Path, given: dict[str, Any]) -> None:
    """Keep an answer of `POST /credentials`, in one step. Where nothing can be written, nothing is kept."""
    now = datetime.now(UTC)
    used_until = now + USED_FOR * (datetime.fromisoformat(given["expires_at"]) - now)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent)  # readable by its owner only
        with os.fdopen(handle, "w", encoding="utf-8") as new:
            json.dump({"used_until": used_until.isoformat(), "credential": given}, new)
        Path(name).replace(path)
    except OSError:
        return
