"""Conflicts between transactions: which one fails because of which commit, and in which phase a statement must run."""
