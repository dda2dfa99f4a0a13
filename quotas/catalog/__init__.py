"""The catalog: clusters, flavors, pools and offerings."""
