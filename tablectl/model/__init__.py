"""The nouns: frozen, pure, and known to every other package."""
