"""What every app stands on: clock, errors, money, locks, the durable list of what to look at, logs."""
