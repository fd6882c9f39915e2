"""The protected window: the lease on each table, and everything that runs under it."""
