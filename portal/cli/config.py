"""Configuration of the commands: `GPU_PORTAL_URL`, `GPU_PORTAL_TOKEN` and `GPU_PORTAL_PROJECT`, or what `login` and
`config` stored.

The file is `gpu-portal/config.toml` in `XDG_CONFIG_HOME` (default `~/.config`), readable by its owner only.
"""

import json
import os
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from portal.cli.errors import CommandError
from portal.cli.files import folder, written

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Config:
    """``project`` is the slug of the default project, or empty. Raises CommandError for what cannot be sent."""

    url: str
    token: str
    project: str = ""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value.isprintable() or (name == "token" and not value.isascii()):
                raise CommandError(f"The configured {name} has characters that none has.", reason="not_configured")


def base(url: str) -> str:
    """Return the address of the portal, also if that of its REST API is given."""
    return url.strip().rstrip("/").removesuffix("/api/v1").rstrip("/")


def origin(url: str) -> tuple[str | None, str | None, int | None]:
    """Return scheme, host and port, which a token is of, as a request is sent to them. Raises CommandError."""
    try:
        parts = parse_url(url)
    except LocationParseError as error:
        raise CommandError(f"{url} is not the URL of a portal.", reason="url_invalid") from error
    return parts.scheme, parts.host, parts.port or PORTS.get(parts.scheme or "")


def path() -> Path:
    """Return where the configuration is. Raises CommandError without a home folder."""
    return folder("XDG_CONFIG_HOME", ".config") / "config.toml"


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
    """Return what the file has, which may be nothing. Raises CommandError if it cannot be read or used."""
    try:
        file = path()
    except CommandError:
        return Config("", "")
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Config("", "")
    except (OSError, ValueError) as error:
        raise CommandError(
            f"{file} cannot be read ({error}).", reason="not_configured", hint="Run `gpu-portal login` again."
        ) from error
    return Config(*(str(values.get(name, "")) for name in ("url", "token", "project")))


def usable() -> Config:
    """Return what the file has; nothing if it cannot be read or used, for `login`, which writes it anew."""
    try:
        return stored()
    except CommandError:
        return Config("", "")
