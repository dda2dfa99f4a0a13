"""Files that the commands write, and the sentence when one cannot be written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.cli.errors import CommandError


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Raise CommandError if what the block writes to the path cannot be written."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise CommandError(f"{error.filename or path} cannot be written: {why}.", reason="not_written") from error
