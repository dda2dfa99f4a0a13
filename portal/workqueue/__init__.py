"""The work queue: targets to reconcile with their due times, and messages that wake workers."""
