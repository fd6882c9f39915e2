"""Write the bill of materials of a release, as CycloneDX 1.6: the packages of the locks that users install from.

``python -m tools.sbom build/sbom.cdx.json``. The same commit gives the same bytes. Fields:
https://cyclonedx.org/docs/1.6/json/ (read 28 November 2026).
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tablectl.version import __version__

ROOT = Path(__file__).parents[1]
LOCKS = ("base", "spark", "aws")
"""In ``locks/``. What the first has is needed by each installation, the others by an extra."""
_PACKAGE = re.compile(
    r"(?m)^([a-z0-9][a-z0-9.-]*)==(\S+)(?: ; ([^\\\n]+?))?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$"
)


def packages(lock: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """Name, version, marker and hashes of each package of a lock. Raises ``ValueError`` for a line of another form."""
    found = list(_PACKAGE.finditer(lock))
    if len(found) != sum(1 for line in lock.splitlines() if line and not line.startswith((" ", "#"))):
        raise ValueError("a lock has a line that is not understood")
    for each in found:
        yield each[1], each[2], each[3] or "", re.findall(r"sha256:([0-9a-f]{64})", each[4])


def bill(locks: dict[str, str], version: str = __version__) -> dict[str, Any]:
    """The bill of a version, from the text of each lock."""
    components: dict[str, dict[str, Any]] = {}
    guard = {"type": "library", **_identity("tablectl-guard", version), "scope": "required"}
    components[guard["bom-ref"]] = guard
    for lock, text in locks.items():
        for name, number, marker, hashes in packages(text):
            identity = _identity(name, number)
            files = {
                "type": "distribution",
                "url": f"https://pypi.org/project/{name}/{number}/",
                "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
            }
            made = {
                "type": "library",
                **identity,
                "scope": "required" if lock == LOCKS[0] else "optional",
                "externalReferences": [files],
            }
            if marker:
                made["properties"] = [{"name": "python:marker", "value": marker}]
            components.setdefault(identity["bom-ref"], made)
    own = {"type": "application", **_identity("tablectl", version), "licenses": [{"license": {"id": "Apache-2.0"}}]}
    names = sorted(components)
    body: dict[str, Any] = {
        "metadata": {"component": own},
        "components": [components[name] for name in names],
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": names}],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return {**head, **body}


def _identity(name: str, version: str) -> dict[str, Any]:
    address = f"pkg:pypi/{name}@{version}"
    return {"bom-ref": address, "name": name, "version": version, "purl": address}


def main(args: list[str]) -> int:
    """Write the bill to the named file."""
    if len(args) != 1:
        sys.stderr.write("usage: python -m tools.sbom FILE\n")
        return 64
    locks = {name: (ROOT / "locks" / f"{name}.lock").read_text(encoding="utf-8") for name in LOCKS}
    file = Path(args[0])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(bill(locks), indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
