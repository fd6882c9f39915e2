"""``python -m tablectl``."""

from tablectl.cli import main

main()
