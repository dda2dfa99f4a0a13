"""The docs: pages in Markdown, how Sphinx builds them (conf.py), and what generates pages from the code (generate)."""
