"""Configuration of the commands: `GPU_PORTAL_URL`, `GPU_PORTAL_TOKEN` and `GPU_PORTAL_PROJECT`, or what `login` and
`config` stored.

The file is `gpu-portal/config.toml` in `XDG_CONFIG_HOME` (default `~/.config`), readable by its owner only.
"""

import json
import os
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from portal.cli.errors import CommandError


@dataclass(frozen=True)
class Config:
    """``project`` is the slug of the default project, or empty."""

    url: str
    token: str
    project: str = ""


def path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "gpu-portal" / "config.toml"


def load() -> Config:
    """Return the configuration of the environment or of the file; raise an error that says what to do if neither has
    it.
    """
    kept = stored()
    url = os.environ.get("GPU_PORTAL_URL") or kept.url
    token = os.environ.get("GPU_PORTAL_TOKEN") or kept.token
    if not url or not token:
        raise CommandError(
            "No portal is configured.",
            reason="not_configured",
            hint="Run `gpu-portal login`, or set GPU_PORTAL_URL and GPU_PORTAL_TOKEN.",
        )
    return Config(url.rstrip("/"), token, os.environ.get("GPU_PORTAL_PROJECT") or kept.project)


def save(config: Config) -> Path:
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.chmod(0o600)
    # A JSON string of ASCII is a TOML basic string.
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in asdict(config).items() if value]
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
