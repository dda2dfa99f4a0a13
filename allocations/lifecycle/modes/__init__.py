"""The desired objects of an allocation, one module for each mode. Pure."""
