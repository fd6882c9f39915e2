"""``python -m tablectl``."""

from tablectl.commands import main

main()
