"""The usage ledger: append-only intervals of who held what."""
