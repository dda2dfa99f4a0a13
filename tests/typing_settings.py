"""The settings as mypy's Django plugin imports them; nothing is opened."""

import os

os.environ.setdefault("SECRET_KEY", "only-for-types")
os.environ.setdefault("DATABASE_URL", "postgresql:///only-for-types")

from portal.settings import *  # noqa: F403 (after the environment is complete)
