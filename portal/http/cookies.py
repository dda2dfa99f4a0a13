"""Cookies without escapes, which the portal never sets.

Python before 3.11.10 takes quadratic time for backslashes in a cookie (CVE-2024-7592), and Django reads the cookies of
every request. A browser may send such cookies of other sites of the same domain.
"""

from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


def drop_escaped(application: WSGIApplication) -> WSGIApplication:
    """Return `application`, which does not see cookies with a backslash."""

    def wrapped(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if "\\" in (sent := environ.get("HTTP_COOKIE", "")):
            environ["HTTP_COOKIE"] = plain(sent)
        return application(environ, start_response)

    return wrapped


def plain(cookies: str) -> str:
    """Return the value of a Cookie header without the cookies that have a backslash."""
    return ";".join(each for each in cookies.split(";") if "\\" not in each)
