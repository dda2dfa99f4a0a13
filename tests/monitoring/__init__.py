"""Rules and dashboards of deploy/monitoring on a real Prometheus: ``make monitoring``."""
