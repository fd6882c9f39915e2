"""Which transaction fails against which commit, one file for each family of clients."""
