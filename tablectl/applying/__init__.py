"""The protected window: the lease of each table and everything that runs under it."""
