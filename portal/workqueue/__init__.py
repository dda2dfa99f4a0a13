"""What has to be looked at, and when: a table, and messages that wake workers."""
