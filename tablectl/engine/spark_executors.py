"""Work on the executors of a cluster, by ``mapInPandas``: text in, text out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tablectl.engine.interface import RemoteWork
from tablectl.model.errors import EngineError

_MISSING = "ImportError: "


def map_parts(session: Any, work: RemoteWork, parts: Sequence[str]) -> tuple[str, ...]:
    """``Executors.on_executors`` on a Spark session, classic or Connect: one task for each part."""
    frame = session.createDataFrame(list(enumerate(parts)), "number INT, part STRING").repartition(len(parts))
    rows = frame.mapInPandas(_mapper(work), "number INT, result STRING, error STRING").collect()
    found = {row["number"]: row for row in rows}
    wrong = next((row["error"] for row in rows if row["error"]), "")
    if wrong.startswith(_MISSING):
        raise EngineError(
            f"the cluster's Python cannot import what a plan needs: {wrong.removeprefix(_MISSING)}",
            "install the same version of tablectl on the executors, as you install it here, or leave `--on spark` out",
        )
    if wrong or len(found) != len(parts):
        raise EngineError(f"an executor could not plan its tables: {wrong or 'it returned nothing'}")
    return tuple(found[number]["result"] for number in range(len(parts)))


def _mapper(work: RemoteWork) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function without a name in a module: it is sent by value, and so can say that tablectl is missing."""
    module, name, common, missing = work.module, work.name, work.common, _MISSING

    def run(frames: Iterator[Any]) -> Iterator[Any]:
        import importlib  # noqa: PLC0415  # on the executor

        pandas = importlib.import_module("pandas")

        def call(part: str) -> tuple[str, str]:
            try:
                return getattr(importlib.import_module(module), name)(common, part), ""
            except ImportError as error:
                return "", f"{missing}{error}"
            except Exception as error:  # noqa: BLE001  # it must arrive as text
                return "", f"{type(error).__name__}: {error}"

        for frame in frames:
            done = [(number, *call(part)) for number, part in zip(frame["number"], frame["part"], strict=True)]
            yield pandas.DataFrame(done, columns=["number", "result", "error"])

    return run
