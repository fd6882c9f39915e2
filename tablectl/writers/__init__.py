"""What writers import, by way of ``tablectl`` itself: ``guard``, ``guard_batch``, ``retry_on_conflict``."""
