"""Who may have how much, and its projection to Kueue."""
