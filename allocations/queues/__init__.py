"""Teams' queues: their entries and positions, the state of Kueue's objects, and lending between teams."""
