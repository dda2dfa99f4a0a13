"""Configuration of the commands: `GPU_PORTAL_URL`, `GPU_PORTAL_TOKEN` and `GPU_PORTAL_PROJECT`, or what `login` and
`config` stored.

The file is `gpu-portal/config.toml` in `XDG_CONFIG_HOME` (default `~/.config`), readable by its owner only.
"""

import json
import os
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from portal.cli.errors import CommandError
from portal.cli.files import written


@dataclass(frozen=True)
class Config:
    """``project`` is the slug of the default project, or empty."""

    url: str
    token: str
    project: str = ""


def base(url: str) -> str:
    """Return the address of the portal, also if that of its REST API is given."""
    return url.strip().rstrip("/").removesuffix("/api/v1").rstrip("/")


def origin(url: str) -> tuple[str, str]:
    """Return scheme and host with port, which a token is of."""
    parts = urlsplit(url.lower())
    return parts.scheme, parts.netloc.rpartition("@")[2]


def path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "gpu-portal" / "config.toml"


def load() -> Config:
    """Return the configuration of the environment or of the file; raise an error that says what to do if neither has
    it. A stored token goes only to the scheme, host and port that `login` stored it for.
    """
    kept = stored()
    url = base(os.environ.get("GPU_PORTAL_URL") or kept.url)
    token = os.environ.get("GPU_PORTAL_TOKEN", "").strip()
    if not token and kept.token and origin(url) != origin(kept.url):
        raise CommandError(
            f"The stored token is of {kept.url}, and GPU_PORTAL_URL names {url}.",
            reason="not_configured",
            hint="Set GPU_PORTAL_TOKEN too, or run `gpu-portal login`.",
        )
    token = token or kept.token
    if not url or not token:
        raise CommandError(
            "No portal is configured.",
            reason="not_configured",
            hint="Run `gpu-portal login`, or set GPU_PORTAL_URL and GPU_PORTAL_TOKEN.",
        )
    return Config(url, token, os.environ.get("GPU_PORTAL_PROJECT") or kept.project)


def save(config: Config) -> Path:
    file = path()
    # A JSON string of ASCII is a TOML basic string.
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in asdict(config).items() if value]
    with written(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.chmod(0o600)
        file.write_text("".join(lines), encoding="utf-8")
    return file


def stored() -> Config:
    """Return what the file has, which may be nothing."""
    file = path()
    if not file.exists():
        return Config("", "")
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CommandError(
            f"{file} cannot be read ({error}).", reason="not_configured", hint="Run `gpu-portal login` again."
        ) from error
    return Config(*(str(values.get(name, "")) for name in ("url", "token", "project")))
