"""What is measured in a process of its own: one table read by a library, and what is fetched for it.

`python _reads.py tablectl|deltalake LOCATION TIMES` prints the seconds of the first and of the quickest read;
`python _reads.py fetched LOCATION LOOK_BACK` prints how many requests tablectl makes of a store, and their bytes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def by_tablectl(location: str) -> None:
    """Protocol, metadata, schema, and clustering columns."""
    from tablectl.delta.names import TableName  # noqa: PLC0415
    from tablectl.log.reader import read_table  # noqa: PLC0415  # only what is measured is loaded

    assert read_table(TableName("", (location,)), location).clustering


def by_deltalake(location: str) -> None:
    """Protocol, metadata and schema; it does not tell clustering columns."""
    from deltalake import DeltaTable  # noqa: PLC0415

    table = DeltaTable(location)
    assert table.metadata().id
    assert table.protocol().min_writer_version
    assert table.schema().fields


def timed(read: Callable[[str], None], location: str, times: int) -> tuple[float, float]:
    """Seconds of the first read, libraries being loaded already, and of the quickest."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        read(location)
        seconds.append(time.perf_counter() - start)
    return seconds[0], min(seconds)


def fetched(location: str, look_back: int) -> tuple[int, int]:
    """Requests and bytes for one read of a table in an object store."""
    import obstore  # noqa: PLC0415
    from obstore.store import MemoryStore  # noqa: PLC0415

    from tablectl.delta.names import TableName  # noqa: PLC0415
    from tablectl.log.reader import read_table  # noqa: PLC0415
    from tablectl.model.table import Depth  # noqa: PLC0415
    from tablectl.storage.object_stores import StoreOptions  # noqa: PLC0415

    store, sizes = MemoryStore(), list[int]()
    for file in (Path(location) / "_delta_log").iterdir():
        obstore.put(store, f"t/_delta_log/{file.name}", file)

    def counting(call: Callable[..., Any], size: Callable[[Any], int]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            sizes.append(0)
            result = call(*arguments, **options)
            sizes[-1] = size(result)
            return result

        return counted

    obstore.get = counting(obstore.get, lambda result: int(result.range[1] - result.range[0]))
    obstore.get_range = counting(obstore.get_range, lambda result: len(bytes(result)))
    obstore.list = counting(obstore.list, lambda _: 0)
    obstore.head = counting(obstore.head, lambda _: 0)
    options = StoreOptions(memory=store)
    read_table(TableName("", ("memory:///t",)), "memory:///t", Depth(look_back), options=options)
    return len(sizes), sum(sizes)


def main() -> None:
    """See the module."""
    what, location, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "fetched":
        answer: tuple[float, float] = fetched(location, number)
    else:
        import_module({"tablectl": "tablectl.log.reader", "deltalake": "deltalake"}[what])
        answer = timed(by_tablectl if what == "tablectl" else by_deltalake, location, number)
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
