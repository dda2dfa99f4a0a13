"""How the portal is delivered: the chart judged, a release built, and both installed on the local control plane."""
