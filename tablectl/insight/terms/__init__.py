"""The words of conflicts and the facts behind the rules, for ``tablectl explain``."""
