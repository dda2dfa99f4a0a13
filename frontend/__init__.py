"""The portal's pages."""
