"""Metering: records held and reserved slices in the usage ledger."""
