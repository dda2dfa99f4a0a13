"""Who had what, when: append-only usage intervals."""
