"""Which transaction loses to which commit, and what follows from it for the order of an apply."""
