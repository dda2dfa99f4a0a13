"""The docs at /docs: who reads them, in which theme, and what is said where they are not built."""

import gzip

import brotli
import pytest

from tests.support.pages import text

pytestmark = pytest.mark.django_db
PAGE = "<!doctype html><html><head></head><body><p>Words</p></body></html>"


@pytest.fixture
def site(tmp_path, settings):
    """Return the folder of a small site."""
    folder = settings.DOCS_ROOT = tmp_path / "html"
    (folder / "_static").mkdir(parents=True)
    (folder / "concepts").mkdir()
    (folder / "index.html").write_text(PAGE)
    (folder / "concepts" / "words.html").write_text(PAGE)
    (folder / "_static" / "portal.css").write_text("body {}")
    (tmp_path / "secret.html").write_text("not of the docs")
    return folder


@pytest.mark.parametrize("path", ["/docs/", "/docs/index.html", "/docs/concepts/words.html"])
def test_everyone_who_is_signed_in_reads_pages(site, browser, path):
    response = browser.get(path)
    assert (response.status_code, response["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "Words" in text(response)
    assert "script-src 'self'" in response["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/docs/", "/docs/concepts/words.html", "/docs/_static/portal.css"])
def test_who_is_not_signed_in_is_led_to_sign_in(site, client, path):
    assert client.get(path)["Location"] == f"/login?next={path}"


def test_the_address_without_a_slash_leads_to_the_first_page(site, browser):
    assert browser.get("/docs")["Location"] == "/docs/"


@pytest.mark.parametrize(("cookie", "body"), [("dark", '<body data-theme="dark">'), ("auto", "<body>")])
def test_pages_have_the_theme_that_was_chosen_in_the_portal(site, browser, cookie, body):
    browser.cookies["theme"] = cookie
    assert body in browser.get("/docs/").content.decode()


def test_a_file_with_a_digest_in_its_address_is_kept_and_any_other_is_asked_for_again(site, browser):
    kept, other = (browser.get(f"/docs/_static/portal.css{query}") for query in ("?v=1", ""))
    assert kept.getvalue() == other.getvalue() == b"body {}"
    assert "immutable" in kept["Cache-Control"]
    assert other["Cache-Control"] == "private, no-cache"
    since = {"If-Modified-Since": other["Last-Modified"]}
    assert browser.get("/docs/_static/portal.css", headers=since).status_code == 304


@pytest.mark.parametrize("path", ["/docs/concepts/words.html", "/docs/_static/portal.css?v=1"])
@pytest.mark.parametrize(("encoding", "read"), [("br", brotli.decompress), ("gzip", gzip.decompress)])
def test_pages_and_styles_are_compressed(site, browser, path, encoding, read):
    answer = browser.get(path, headers={"Accept-Encoding": encoding})
    assert answer["Content-Encoding"] == encoding
    assert "Accept-Encoding" in answer["Vary"]
    assert read(answer.getvalue()) == browser.get(path).getvalue()


@pytest.mark.parametrize("path", ["none.html", "_static/none.css", "../secret.html", "concepts/", "%2e%2e/secret.html"])
def test_what_is_not_of_the_docs_is_not_found(site, browser, path):
    assert browser.get(f"/docs/{path}").status_code == 404


def test_docs_that_are_not_built_say_how_to_build_them(tmp_path, settings, browser):
    settings.DOCS_ROOT = tmp_path
    response = browser.get("/docs/concepts/words.html")
    assert response.status_code == 404
    assert "make docs" in text(response)
