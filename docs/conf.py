"""How Sphinx builds the docs: `make docs` writes them to docs/build/html, which the portal serves at /docs."""

project = "GPU portal"
html_title = "GPU portal"
extensions = ["myst_parser"]
exclude_patterns = ["build", "generate"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # links such as limits.md#effects-of-limits
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
