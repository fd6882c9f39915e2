"""Policies and configuration: YAML files in, records out that know the file and line of everything they declare."""
