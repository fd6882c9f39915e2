"""The engine on databricks-connect. ``make test-databricks-connect`` runs it: another Python, another lock file."""
