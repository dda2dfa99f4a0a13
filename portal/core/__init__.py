"""What every app stands on: clock, errors, money, locks, logs, signs of life, and the rows of audit log and work queue."""
