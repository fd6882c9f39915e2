"""What Spark and Delta say when a statement fails, cut down to what helps."""

from __future__ import annotations

import re

from tablectl.model.errors import EngineError

_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\]")
_CLASSES = {
    "MetadataChangedException": "DELTA_METADATA_CHANGED",
    "ProtocolChangedException": "DELTA_PROTOCOL_CHANGED",
    "ConcurrentAppendException": "DELTA_CONCURRENT_APPEND",
    "ConcurrentDeleteReadException": "DELTA_CONCURRENT_DELETE_READ",
    "ConcurrentDeleteDeleteException": "DELTA_CONCURRENT_DELETE_DELETE",
    "ConcurrentTransactionException": "DELTA_CONCURRENT_TRANSACTION",
    "ConcurrentWriteException": "DELTA_CONCURRENT_WRITE",
}
_HINTS = {
    "DELTA_METADATA_CHANGED": "another writer changed the table's metadata at the same moment: run the command again",
    "DELTA_PROTOCOL_CHANGED": "another writer changed the table's protocol at the same moment: run the command again",
    "DELTA_CONCURRENT_APPEND": "another writer added files at the same moment: run the command again",
    "DELTA_CONCURRENT_DELETE_READ": "another writer rewrote files at the same moment: run the command again",
    "DELTA_CONCURRENT_TRANSACTION": "another run re-clustered or overwrote the table at the same moment: run it again",
    "DELTA_CONCURRENT_DELETE_DELETE": "another writer rewrote the same files at the same moment: run the command again",
    "DELTA_CONCURRENT_WRITE": "another writer committed at the same moment: run the command again",
    "DELTA_UNKNOWN_CONFIGURATION": "this Delta version does not know the property: remove it, or upgrade the engine",
}


def engine_error(error: Exception) -> EngineError:
    """The error of a statement.

    The condition is the engine's own, else the class of the exception, else the bracketed word its text begins with:
    classic PySpark gives neither condition nor SQLSTATE for Delta's errors (delta.md 0).
    """
    condition = _condition(error)
    return EngineError(f"{_short(str(error))}", _HINTS.get(condition, ""), condition)


def _condition(error: Exception) -> str:
    get = getattr(error, "getCondition", None)
    own = get() if callable(get) else None
    if isinstance(own, str) and own:
        return own
    named = _CLASSES.get(type(error).__name__)
    if named:
        return named
    found = _CONDITION.search(str(error)[:4000])
    return found.group(1) if found else ""


def _short(text: str) -> str:
    """The message without the JVM's stack, one paragraph of it, bounded."""
    text = text.split("JVM stacktrace:", maxsplit=1)[0]
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("at ", "... ", "Caused by", "py4j."))]
    for index, line in enumerate(kept):
        # "An error occurred while calling o42.sql." comes before what py4j was told.
        if line.startswith("An error occurred while calling"):
            kept = [line.removeprefix(": ") for line in kept[index + 1 :]]
            break
    message = " ".join(kept[:4])
    message = re.sub(r"^(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error)): ", r"", message)
    return message[:600] or "the engine gave no reason"
