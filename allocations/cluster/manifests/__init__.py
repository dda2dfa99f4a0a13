"""Pure builders: frozen facts in, plain dictionaries out, each a full server-side apply intent."""
