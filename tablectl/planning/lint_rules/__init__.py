"""The lint rules, one file per theme. Each is a function from a state to its findings."""
