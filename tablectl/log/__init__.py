"""The live table: the reader of Delta logs, without a JVM and without an engine."""
