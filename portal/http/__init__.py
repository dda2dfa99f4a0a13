"""What is the same for every HTTP request: middleware, client addresses and limits on them."""
