"""Which operations on a table fail which: ``tablectl conflicts``."""
