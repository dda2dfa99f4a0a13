"""What everything in ``allocations`` speaks of: pure types and the rules of phases."""
