"""The records that every other package shares: frozen and pure."""
