"""python -m tests.starts: starts fresh clones as new users do, and prints a table of what was seen; `make starts`.

--only PATTERN    the cases with this regular expression in their names
--pause SECONDS   how long every process is stopped; default 20
--python PATH     another Python to start with, such as python3.12; may be given again

Its clones have what is committed. It needs what `make test` needs, and root for the cases that say so.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.starts import cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--pause", type=float, default=20.0)
    parser.add_argument("--python", action="append", default=[])
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job may ignore it, and so would what it starts
    rows = []
    with tempfile.TemporaryDirectory(prefix="gpu-portal-starts-") as folder:
        Path(folder).chmod(0o755)  # the clones of other users stand below it
        for name, case in cases.table(Path(folder), arguments.pause, arguments.python).items():
            if re.search(arguments.only, name):
                rows.append((name, *_run(case)))
                sys.stdout.write("| {} | {} | {} | {:.0f} s |\n".format(*rows[-1]))
                sys.stdout.flush()
    return int(any(result == "FAILED" for _, result, _, _ in rows))


def _run(case: cases.Case) -> tuple[str, str, float]:
    began = time.monotonic()
    os.umask(0o022)
    try:
        result, seen = "as expected", case()
    except cases.Skipped as reason:
        result, seen = "skipped", str(reason)
    except Exception as error:  # the other cases are still worth trying
        result, seen = "FAILED", f"{type(error).__name__}: {error}"
    return result, seen, time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
