"""How Sphinx builds the docs: `make docs` writes them to docs/build/html, which the portal serves at /docs."""

from functools import reduce
from pathlib import Path

from sphinx.application import Sphinx

project = "GPU portal"
html_title = "GPU portal"
extensions = ["myst_parser"]
exclude_patterns = ["build", "generate"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # links such as limits.md#effects-of-limits
myst_url_schemes = {
    **dict.fromkeys(("http", "https", "mailto")),
    "portal": "/{{path}}#{{fragment}}",  # the portal that serves these docs: portal:api/docs#/teams
}
highlight_language = "none"  # a block of code names its language

html_theme = "furo"
templates_path = ["_templates"]  # no inline script or style: the portal's content security policy forbids both
html_static_path = ["_static"]
html_css_files = ["portal.css"]
html_favicon = "../frontend/static/frontend/favicon.svg"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {"top_of_page_buttons": []}
html_copy_source = False
html_show_copyright = False
html_use_index = False
html_domain_indices = False

MISSING = {
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    "<pre>": '<pre tabindex="0">',
    'docutils container">': 'docutils container" tabindex="0">',
    '<div id="search-results"></div>': '<h1>Search</h1><div id="search-results"></div>',
}
"""What Furo's pages lack for screen readers, as axe says."""


def add_missing(app: Sphinx, error: Exception | None) -> None:
    """Write what is missing into the pages that were built."""
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        better = reduce(lambda found, words: found.replace(*words), MISSING.items(), text)
        if better != text:
            path.write_text(better, encoding="utf-8")


def leave_evidence_out(app: Sphinx, doctree: object) -> None:
    """Keep the pages of security evidence out of search and menu: their tables have every word one looks for."""
    if app.env.docname.startswith("evidence/") and app.env.docname != "evidence/index":
        app.env.metadata[app.env.docname].update({"no-search": True, "orphan": True})


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", leave_evidence_out)
    app.connect("build-finished", add_missing)
