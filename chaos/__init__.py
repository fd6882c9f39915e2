"""Fault runs: guarded writers and applies on real Delta while processes are killed, paused and cut off (`make chaos`).

For maintainers; not part of the wheel. What the product does is only seen from outside: its command line, its public
functions, its records and the Delta log. `replay` and `check` read the log by themselves and import nothing of it.
"""
