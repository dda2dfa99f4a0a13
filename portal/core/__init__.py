"""What every app stands on: clock, errors, money, locks, logs, and the rows of audit log and work queue."""
