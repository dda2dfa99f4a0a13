#!/usr/bin/env python
"""Django's command line for the portal."""

import os
import sys

from django.core.management import execute_from_command_line

from portal.audit import context

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    with context.channel("command", command=" ".join(sys.argv[1:2])):
        execute_from_command_line(sys.argv)
