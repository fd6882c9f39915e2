"""A hook of `window.before` and `window.after`: appends to a journal that it ran, for which run and table."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    journal, hook = sys.argv[1:]
    table = Path(os.environ["TABLECTL_LOCATION"]).name
    line = json.dumps({"hook": hook, "table": table, "run": os.environ["TABLECTL_RUN"], "at": time.time()})
    with Path(journal).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
