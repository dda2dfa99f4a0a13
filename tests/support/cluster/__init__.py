"""What tests on a real control plane share."""
