"""The audit log: entries, the hash chain over them, and database grants."""
