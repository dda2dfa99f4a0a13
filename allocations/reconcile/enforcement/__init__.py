"""The controller that ends use beyond a lease."""
