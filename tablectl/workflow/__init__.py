"""What the commands do with a ``Project``, one module for each: a command loads only what it does.

plan :  load policies → expand patterns → read tables → diff → actions → lint → order → save → show
apply:  load plan → take leases → check fresh → run phases → verify → release → show
"""
