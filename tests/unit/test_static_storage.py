"""A style sheet of production contains what it imports, in the same cascade layers."""

from pathlib import Path

import pytest

from frontend.static_storage import bundled

STATIC = Path(__file__).parents[2] / "frontend" / "static"
SHEET = "frontend/css/portal.css"


def sheets():
    return {str(path.relative_to(STATIC)): path.read_text(encoding="utf-8") for path in STATIC.rglob("*.css")}


def test_an_import_is_replaced_by_its_sheet_in_its_layer():
    whole = bundled("a/x.css", {"a/x.css": '@layer y;\n@import url("y.css") layer(y);\nb {}', "a/y.css": "i {}"})
    assert whole == "@layer y;\n@layer y {\ni {}\n}\nb {}"


def test_the_portals_sheet_imports_nothing_and_has_every_sheet_that_it_imported():
    found = sheets()
    whole = bundled(SHEET, found)
    names = [line.split('"')[1] for line in found[SHEET].splitlines() if line.startswith("@import")]
    assert len(names) > 5
    assert "@import" not in whole and "@charset" not in whole
    for name in names:
        path = str((STATIC / "frontend/css" / name).resolve().relative_to(STATIC.resolve()))
        assert found[path].replace('@charset "UTF-8";', "") in whole


@pytest.mark.parametrize(
    ("imported", "why"),
    [
        ({}, "which is no static file"),
        ({"a/y.css": '@import url("z.css");'}, "imports others"),
    ],
)
def test_an_import_that_cannot_be_moved_is_refused(imported, why):
    with pytest.raises(ValueError, match=why):
        bundled("a/x.css", {"a/x.css": '@import url("y.css");', **imported})


def test_a_sheet_of_another_folder_must_not_name_files_beside_itself():
    files = {"a/x.css": '@import url("../b/y.css");', "b/y.css": 'i { background: url("pattern.png") }'}
    with pytest.raises(ValueError, match="names files beside itself"):
        bundled("a/x.css", files)
