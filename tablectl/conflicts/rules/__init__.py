"""Which transaction fails because of which commit, one file for each family of clients."""
