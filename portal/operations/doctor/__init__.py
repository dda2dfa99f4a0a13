"""Checks of the running portal, each with a fix, for `manage.py doctor` and for pages."""
