"""The audit log: entries, the hash chain over them, and the grants that keep it and the ledger append-only."""
