"""Shared by all apps: clock, errors, money, locks, logs, and the models of audit log and work queue."""
