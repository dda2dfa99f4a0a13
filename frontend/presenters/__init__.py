"""What people read: words, amounts, colours and icons, each decided in one place; templates only lay them out."""
