"""Who did what: entries, the chain that shows changes to them, and database grants."""
