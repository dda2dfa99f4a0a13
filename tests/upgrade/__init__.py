"""Databases of releases, which `tests/db/test_upgrade.py` upgrades."""
