"""How a web process takes requests from the network, before the application sees them."""
