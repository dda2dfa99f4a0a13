"""Which bodies and addresses are decoded: those in UTF-8.

Django decodes form, query string and file names by whatever codec of Python the Content-Type names, before it knows who
asks. Some take quadratic time (punycode), and others are not of text (hex). JSON is UTF-8 in any case (RFC 8259 §8.1),
and so are forms (https://url.spec.whatwg.org, application/x-www-form-urlencoded).
"""

import re
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from portal.core.errors import UnsupportedMediaType

REFUSED = "portal.refused_content_type"
"""In `environ` and `request.META`: set if the Content-Type was refused, and is no longer there."""
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_PARAMETER = rf'[ \t]*+;[ \t]*+({_WORD})=({_WORD}|"[ !#-\[\]-~]*+")'
_MEDIA_TYPE = re.compile(rf"{_WORD}/{_WORD}(?:{_PARAMETER})*+;?+")
_PARAMETERS = re.compile(_PARAMETER)
_UTF8 = ("utf-8", "utf8")


def is_utf8(content_type: str) -> bool:
    """Return whether a Content-Type is absent, or a media type (RFC 9110 §8.3.1) whose text is UTF-8.

    Parameters whose own values name a codec (`name*=`, RFC 2231) are no part of it.
    """
    content_type = content_type.strip(" \t")
    if not content_type:
        return True
    if _MEDIA_TYPE.fullmatch(content_type) is None:
        return False
    parameters = [(name.lower(), value.strip('"').lower()) for name, value in _PARAMETERS.findall(content_type)]
    return all("*" not in name and (name != "charset" or value in _UTF8) for name, value in parameters)


def take_utf8_only(application: WSGIApplication) -> WSGIApplication:
    """Return `application`, which never sees another Content-Type: `REFUSED` tells it that there was one.

    It is taken away here since Django looks it up before any middleware runs.
    """

    def wrapped(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not is_utf8(environ.get("CONTENT_TYPE", "")):
            del environ["CONTENT_TYPE"]
            environ[REFUSED] = True
        return application(environ, start_response)

    return wrapped


def problem() -> UnsupportedMediaType:
    return UnsupportedMediaType(
        "Only text in UTF-8 is read.", hint="Send a Content-Type without charset, or with charset=utf-8."
    )
