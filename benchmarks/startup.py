"""Start-up: what the short commands cost, against Python alone and against loading what one would use instead.

`python benchmarks/startup.py [--repeat N]`; the figures of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

from _measure import TABLECTL, Cost, run
from _report import machine, memory_text, ratio_text, say, table, time_text

_AIMS = {"tablectl --help": 0.25, "tablectl validate FILE": 0.5, "tablectl plan, one table": 0.6}
"""Seconds of CPU that commands may take."""
_POLICY = """
version: 1
defaults:
  isolation: Serializable
tables:
  delta.`{location}`:
    deletion_vectors: enabled
    clustering: [customer_id, order_date]
    properties: {{delta.checkpointRetentionDuration: interval 60 days, owner.team: payments}}
"""
_INSTEAD = {"deltalake": "import deltalake", "pyspark": "from pyspark.sql import SparkSession"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=15, help="runs of each, of which the least counts")
    options = parser.parse_args()
    say(machine())
    spent = measure(options.repeat)
    say(_costs(spent))
    for name, aim in _AIMS.items():
        say(f"{name}: {'within' if spent[name].cpu <= aim else 'ABOVE'} {time_text(aim)} of CPU")


def measure(repeat: int) -> dict[str, Cost]:
    """What each command costs."""
    with tempfile.TemporaryDirectory(prefix="tablectl-benchmark-") as folder:
        policy = _lake(Path(folder))
        commands = {
            "python -c pass": (sys.executable, "-c", "pass"),
            "tablectl --help": (*TABLECTL, "--help"),
            "tablectl validate FILE": (*TABLECTL, "validate", str(policy)),
            "tablectl schema": (*TABLECTL, "schema"),
            "tablectl plan, one table": (*TABLECTL, "plan", str(policy)),
            **{
                f"python -c '{code}'": (sys.executable, "-c", code)
                for module, code in _INSTEAD.items()
                if importlib.util.find_spec(module)
            },
        }
        return {name: run(*command, repeat=repeat)[0] for name, command in commands.items()}


def _lake(folder: Path) -> Path:
    """One table of two commits, and the policy for it."""
    log = folder / "orders" / "_delta_log"
    log.mkdir(parents=True)
    types = {"customer_id": "long", "order_date": "date", "amount": "double"}
    columns = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    info = {"timestamp": 1_700_000_000_000, "operation": "WRITE", "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}
    metadata = {
        "id": "3b1ff2b7-8a2f-4bd5-a7c5-52b6be7df0d4",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [],
        "configuration": {},
    }
    add = {"path": "a.parquet", "partitionValues": {}, "size": 1000, "modificationTime": 0, "dataChange": True}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    commits: list[list[dict[str, object]]] = [[{"protocol": protocol}, {"metaData": metadata}], [{"add": add}]]
    for version, actions in enumerate(commits):
        lines = (json.dumps(action) + "\n" for action in ({"commitInfo": info}, *actions))
        (log / f"{version:020d}.json").write_text("".join(lines))
    policy = folder / "policies.yaml"
    policy.write_text(_POLICY.format(location=folder / "orders"))
    return policy


def _costs(spent: dict[str, Cost]) -> str:
    one = next(iter(spent.values())).cpu
    rows = (
        (name, time_text(cost.cpu), time_text(cost.seconds), memory_text(cost.memory), ratio_text(cost.cpu / one))
        for name, cost in spent.items()
    )
    return table(("", "CPU", "wall", "memory", "CPU ratio"), rows)


if __name__ == "__main__":
    main()
