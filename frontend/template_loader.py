"""Loads templates without their indentation, which is a tenth of a page on the wire; what fills them stays."""

import re
from pathlib import Path
from typing import Any

from django.template.loaders import app_directories

INDENTATION = re.compile(r"\n[ \t]+")
OWN = Path(__file__).parent


class Loader(app_directories.Loader):
    """Loads the templates of applications. A line of a ``pre`` in a template must begin at its first column."""

    def get_contents(self, origin: Any) -> str:
        contents = super().get_contents(origin)
        return INDENTATION.sub("\n", contents) if Path(origin.name).is_relative_to(OWN) else contents
