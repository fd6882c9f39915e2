"""Advice from a table's log: what to declare, why, and what it is worth (docs/advise.md). Pure."""
