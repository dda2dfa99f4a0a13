"""Events: that something happened, in an order that a reader with a cursor can follow."""
