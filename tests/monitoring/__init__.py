"""Rules and dashboards of deploy/monitoring on a real Prometheus: ``make monitoring``."""

from collections.abc import Callable
from typing import Any

from deploy.local.home import REPOSITORY

MONITORING = REPOSITORY / "deploy" / "monitoring"
Query = Callable[[str], list[dict[str, Any]]]
"""Returns the samples that a PromQL expression has now."""
