"""From what is held and reserved to the usage ledger."""
