"""Policies and configuration: parses YAML files into records that know the file and line of every declaration."""
