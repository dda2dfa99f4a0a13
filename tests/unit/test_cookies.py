"""Cookies with escapes are dropped before they are read, and others are not."""

from portal.http.cookies import drop_escaped


def seen(cookies):
    found = []
    application = drop_escaped(lambda environ, start_response: found.append(environ.get("HTTP_COOKIE")) or [])  # type: ignore[func-returns-value]
    application({} if cookies is None else {"HTTP_COOKIE": cookies}, None)  # type: ignore[arg-type]
    return found[0]


def test_a_cookie_with_a_backslash_is_dropped_and_those_beside_it_stay():
    assert seen('a=1; other="x\\054y"; sessionid=s; b="c"') == 'a=1; sessionid=s; b="c"'


def test_cookies_without_one_stay_as_they_are():
    for cookies in ('timezone=Europe/Berlin; a="b c"', "", None):
        assert seen(cookies) == cookies
