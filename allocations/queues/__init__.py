"""What waits in the queues of teams, and what they lend to each other."""
