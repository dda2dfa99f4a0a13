"""The sections of the home page that roles add, as texts."""
