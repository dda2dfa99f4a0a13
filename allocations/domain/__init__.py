"""The types that all of ``allocations`` uses, and the rules that derive a phase. Pure."""
