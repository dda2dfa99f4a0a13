"""What tests under faults share: load, a witness, and a judge."""
