"""A week of a small fleet, drawn at random: what happens, how a watcher records it, and what it amounts to."""
