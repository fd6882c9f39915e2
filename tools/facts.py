"""Lists the facts about other products that were not read for ninety days: entries of the client data, and pages that
the references name with the day on which they were read. ``make facts`` runs it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from tools.client_features import DATA

LONGEST = 90
"""Days."""
_REFERENCES = Path(__file__).parent.parent / "docs" / "reference"
_READ = re.compile(r"\]\((https://[^)\s]+)\)[^|]{0,60}?read on (\d{4}-\d{2}-\d{2})")


def facts() -> Iterator[tuple[date, str]]:
    """Each fact with the day on which it was read."""
    for each in json.loads(DATA.read_text(encoding="utf-8"))["clients"]:
        how = "python -m tools.client_features" if "read_from" in each else each["source"]
        yield date.fromisoformat(each["as_of"]), f"client {each['name']}: {how}"
        if "probe" in each:
            yield date.fromisoformat(each["probe"]["date"]), f"client {each['name']}: make probe-clients"
    for page in sorted(_REFERENCES.glob("*.md")):
        for address, day in _READ.findall(page.read_text(encoding="utf-8")):
            yield date.fromisoformat(day), f"docs/reference/{page.name}: {address}"


def main() -> int:
    """Print what is older, the oldest first."""
    today = datetime.now(UTC).date()
    every = sorted(set(facts()))
    old = [(day, what) for day, what in every if (today - day).days > LONGEST]
    sys.stdout.write("".join(f"{day} ({(today - day).days} days)  {what}\n" for day, what in old))
    sys.stdout.write(f"{len(old)} of {len(every)} facts are older than {LONGEST} days\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
