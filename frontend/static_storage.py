"""Static files of production: digests in their names, compressed, and each style sheet with what it imports."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from django.core.files.base import ContentFile
from whitenoise.storage import CompressedManifestStaticFilesStorage

OWN = ("frontend/", "vendor/")
IMPORT = re.compile(r'^@import url\("([^"]+)"\)(?: layer\((\w+)\))?;$', re.MULTILINE)
CHARSET = '@charset "UTF-8";'
ELSEWHERE = re.compile(r"url\((?!\s*[\"']?(?:data:|#))")
"""An address in a style sheet that means another file where the sheet stands elsewhere."""


class BundledStaticFilesStorage(CompressedManifestStaticFilesStorage):
    """Puts into each style sheet of the portal what it imports, before its digest is taken.

    A browser learns of an import only when it has read the sheet, and shows nothing until it has both.
    """

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        """Bundle, then yield what WhiteNoise yields. Raises ValueError for an import that cannot be moved."""
        paths = dict(paths)
        if not dry_run:
            sheets = {
                path: _read(*source) for path, source in paths.items() if path.endswith(".css") and path.startswith(OWN)
            }
            for name in sheets:
                self.delete(name)
                paths[name] = (self, self.save(name, ContentFile(bundled(name, sheets).encode())))
        yield from super().post_process(paths, dry_run=dry_run, **options)


def bundled(name: str, sheets: dict[str, str]) -> str:
    """Return the style sheet with each import replaced by that sheet, in its cascade layer.

    Raises ValueError if an imported sheet is missing, imports others itself, or names files of another folder.
    """

    def content(match: re.Match[str]) -> str:
        path, layer = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[1])), match[2]
        if path not in sheets:
            raise ValueError(f"{name} imports {match[1]}, which is no static file.")
        sheet = sheets[path].replace(CHARSET, "", 1)
        if "@import" in sheet:
            raise ValueError(f"{path} imports others: let {name} import them.")
        if posixpath.dirname(path) != posixpath.dirname(name) and ELSEWHERE.search(sheet):
            raise ValueError(f"{path} names files beside itself, which {name} is not.")
        return f"@layer {layer} {{\n{sheet}\n}}" if layer else sheet

    return IMPORT.sub(content, sheets[name])


def _read(storage: Any, path: str) -> str:
    with storage.open(path) as file:
        return str(file.read().decode())
