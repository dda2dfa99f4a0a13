"""Configuration of the commands: `GPU_PORTAL_URL` and `GPU_PORTAL_TOKEN`, or what `login` stored.

The file is `gpu-portal/config.toml` in `XDG_CONFIG_HOME` (default `~/.config`), readable by its owner only.
"""

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import click


@dataclass(frozen=True)
class Config:
    url: str
    token: str


def path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "gpu-portal" / "config.toml"


def load() -> Config:
    """Return the configuration of the environment or of the file; raise a click error that says what to do if neither
    has it.
    """
    kept = _kept()
    url = os.environ.get("GPU_PORTAL_URL") or kept.get("url", "")
    token = os.environ.get("GPU_PORTAL_TOKEN") or kept.get("token", "")
    if not url or not token:
        raise click.ClickException("Run `gpu-portal login`, or set GPU_PORTAL_URL and GPU_PORTAL_TOKEN.")
    return Config(url.rstrip("/"), token)


def save(config: Config) -> Path:
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.chmod(0o600)
    # A JSON string of ASCII is a TOML basic string.
    file.write_text(f"url = {json.dumps(config.url)}\ntoken = {json.dumps(config.token)}\n", encoding="utf-8")
    return file


def _kept() -> dict[str, str]:
    file = path()
    if not file.exists():
        return {}
    try:
        return {key: str(value) for key, value in tomllib.loads(file.read_text(encoding="utf-8")).items()}
    except tomllib.TOMLDecodeError as error:
        raise click.ClickException(f"{file} cannot be read ({error}). Run `gpu-portal login` again.") from error
