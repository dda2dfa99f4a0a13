"""A Content-Type chooses no codec: what is not UTF-8 is refused before it is read, in the portal's own form."""

import encodings.aliases
import io
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.test import Client

from portal.http.content_type import is_utf8, take_utf8_only
from portal.http.middleware import SIGN_IN_LIMIT_BYTES

pytestmark = pytest.mark.django_db
FORM = "application/x-www-form-urlencoded"
CODECS = sorted(set(encodings.aliases.aliases.values()) - {"utf_8"})
ODD = (
    *("multipart/form-data; boundary=b; charset=punycode", f"{FORM}; charset=hex", f"{FORM}; charset=rot13"),
    *(f"{FORM}; charset=undefined", f"{FORM};CHARSET=utf-8;charset=utf-16", f'{FORM}; charset="punycode"'),
    *(f"{FORM}; charset*=punycode''x", f"{FORM}; charset*0=puny; charset*1=code", f"{FORM}; x*=undefined''%ff"),
    *(f"{FORM}; charset=", f"{FORM}; charset", f"{FORM}, text/plain; charset=hex", "charset=hex", ";charset=hex"),
    *("a/b; c=\xe9", "a/b; c=\"\\\"; charset=hex\"", "application/json; charset=utf-7", "utf-8"),
)  # fmt: skip
FINE = (
    *("", " ", FORM, "application/json", "application/json;charset=utf-8", "application/json; charset=UTF-8"),
    *('text/plain; charset="utf-8"', "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW", f"{FORM};"),
    *("application/json; charset=utf8", 'multipart/form-data; boundary="=_a b;c"'),
)


class Unread(io.RawIOBase):
    """A body that nobody may read."""

    def readable(self):
        return True

    def readinto(self, buffer):
        raise AssertionError("The body was read.")


def answer(path, content_type, method="POST", query="", **more):
    """Return status, headers and body of the answer that a server gets of the application."""
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "CONTENT_TYPE": content_type, "QUERY_STRING": query}
    environ |= {"CONTENT_LENGTH": "9", "wsgi.input": io.BufferedReader(Unread()), "HTTP_HOST": "localhost", **more}
    setup_testing_defaults(environ)
    found: dict[str, Any] = {}

    def start_response(status, headers, exc_info=None):
        found["status"], found["headers"] = int(status.split()[0]), dict(headers)

    body = b"".join(take_utf8_only(WSGIHandler())(environ, start_response))
    return found["status"], found["headers"], body.decode()


@pytest.mark.parametrize("content_type", ODD)
@pytest.mark.parametrize("path", ["/login", "/api/v1/allocations", "/no-such-page", "/admin/"])
def test_what_is_not_utf_8_is_refused_before_it_is_read(path, content_type):
    status, headers, body = answer(path, content_type)
    assert status == 415
    assert "Only text in UTF-8 is read" in body
    assert headers["Content-Type"].startswith("application/problem+json" if path.startswith("/api/") else "text/plain")
    assert headers["Cache-Control"] == "private, no-store"


@pytest.mark.parametrize("codec", CODECS)
def test_no_other_codec_of_python_can_be_chosen_under_any_of_its_names(codec):
    names = [codec, *(alias for alias, name in encodings.aliases.aliases.items() if name == codec)]
    assert [name for name in names if is_utf8(f"{FORM}; charset={name}")] == []


def test_an_address_is_not_decoded_by_another_codec_either():
    assert answer("/api/v1/offerings", f"{FORM}; charset=punycode", "GET", f"cursor={'-a' * 2000}")[0] == 415


@pytest.mark.parametrize("content_type", FINE)
def test_utf_8_and_no_charset_are_read(content_type):
    assert is_utf8(content_type)


def test_a_sign_in_in_utf_8_is_read_in_both_forms_of_a_form(member):
    for content_type in (f"{FORM}; charset=UTF-8", 'multipart/form-data; boundary="b"; charset=utf-8'):
        line = b"username=n%C3%A9&password=x"
        parts = ['username"\r\n\r\nn\xe9', 'password"\r\n\r\nx']
        body = "".join(f'--b\r\nContent-Disposition: form-data; name="{part}\r\n' for part in parts) + "--b--\r\n"
        sent = body.encode() if "multipart" in content_type else line
        page = Client().post("/login", sent, content_type=content_type)
        assert page.status_code == 200
        assert 'value="n\xe9"' in page.content.decode()


@pytest.mark.parametrize("codec", ["punycode", "undefined", "hex", "nothing"])
def test_a_part_of_a_form_that_names_a_codec_is_no_error_of_the_server(codec):
    part = f"Content-Disposition: form-data; name*={codec}''%ff\r\nContent-Type: text/plain; charset={codec}\r\n\r\nx"
    page = Client().post("/login", f"--b\r\n{part}\r\n--b--\r\n", content_type="multipart/form-data; boundary=b")
    assert page.status_code in (200, 400)


@pytest.mark.parametrize("path", ["/login", "/admin/login/"])
def test_a_sign_in_takes_a_few_kilobytes(path):
    assert Client().post(path, "x" * SIGN_IN_LIMIT_BYTES, content_type=FORM).status_code != 413
    refused = Client().post(path, "x" * (SIGN_IN_LIMIT_BYTES + 1), content_type=FORM)
    assert (refused.status_code, refused["Content-Type"]) == (413, "text/plain; charset=utf-8")
    assert f"larger than {SIGN_IN_LIMIT_BYTES} bytes" in refused.content.decode()


@pytest.mark.parametrize("length", ["-1", "\u0661", "1e3", "9" * 5000, "0x1"])
def test_a_length_that_is_no_number_is_refused(length):
    assert answer("/login", FORM, CONTENT_LENGTH=length)[0] == 413
