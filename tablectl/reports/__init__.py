"""Reports on plans, runs, drift and conflicts, for people and programs. Records in, text out."""
