"""Reads live tables from their Delta logs, without a JVM and without an engine."""
