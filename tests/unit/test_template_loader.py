"""Templates are loaded without indentation."""

import re
from pathlib import Path

from django.template.loader import render_to_string

TEMPLATES = Path(__file__).parents[2] / "frontend" / "templates"
PRE = re.compile(r"<(pre|textarea)\b(.*?)</\1>", re.DOTALL)


def test_lines_of_a_page_are_not_indented():
    assert not re.search(r"\n[ \t]", render_to_string("500.html"))


def test_no_template_relies_on_indentation():
    for path in TEMPLATES.rglob("*.html"):
        for _, content in PRE.findall(path.read_text(encoding="utf-8")):
            assert not re.search(r"\n[ \t]", content), path
