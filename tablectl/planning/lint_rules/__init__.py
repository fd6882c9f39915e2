"""The rules of lint, one file per theme. Each is a function from a subject to what it finds there."""
