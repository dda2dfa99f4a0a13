"""Where the commands keep files, and the sentence when one cannot be written."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.cli.errors import CommandError


def folder(variable: str, below_home: str) -> Path:
    """Return the commands' folder in that of an environment variable, else below the home folder. Raises CommandError
    where a user has none, as some containers' users.
    """
    base = os.environ.get(variable) or os.path.expanduser(f"~/{below_home}")  # noqa: PTH111 (expanduser() raises)
    if base.startswith("~"):
        raise CommandError("You have no home folder.", reason="not_configured", hint=f"Set {variable} to a folder.")
    return Path(base) / "gpu-portal"


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Raise CommandError if what the block writes to the path cannot be written."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise CommandError(f"{error.filename or path} cannot be written: {why}.", reason="not_written") from error
