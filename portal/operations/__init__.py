"""What operators do with a running portal: check it, back it up and restore it."""
