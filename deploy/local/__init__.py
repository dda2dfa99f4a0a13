"""A real control plane on this machine, without root or containers."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - what imports this may be the machine's python3, before any package
    sys.exit(
        "Python 3.11 or newer is needed; {} is {}.{}. Name one: make demo BASE=python3.12".format(
            sys.executable, *sys.version_info[:2]
        )
    )
