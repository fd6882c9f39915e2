"""The API for writers, imported through ``tablectl``: ``guard``, ``guard_batch``, ``retry_on_conflict``."""
