"""The errors of Spark and Delta, shortened to what helps the user."""

from __future__ import annotations

import re

from tablectl.model.errors import EngineError, is_conflict

_LOOK = 4000
"""Characters of a text to read: Spark's own message comes before its stack trace."""
_CONDITION = re.compile(r"\[([A-Z_][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\]")
_JAVA_CLASS = re.compile(r"\b(?:io\.delta\.exceptions|org\.apache\.spark\.sql\.delta)\.(\w+Exception)\b")
"""The class name in a text, for errors without a class in PySpark: classic sessions before Delta 4.4."""
_CLASSES = {
    "MetadataChangedException": "DELTA_METADATA_CHANGED",
    "ProtocolChangedException": "DELTA_PROTOCOL_CHANGED",
    "ConcurrentAppendException": "DELTA_CONCURRENT_APPEND",
    "ConcurrentDeleteReadException": "DELTA_CONCURRENT_DELETE_READ",
    "ConcurrentDeleteDeleteException": "DELTA_CONCURRENT_DELETE_DELETE",
    "ConcurrentTransactionException": "DELTA_CONCURRENT_TRANSACTION",
    "ConcurrentWriteException": "DELTA_CONCURRENT_WRITE",
}
_DELTA_RS = "CommitFailedError"
"""The exception class of ``deltalake``, which has no condition."""
_DELTA_RS_TEXTS = {
    "Metadata changed since last commit": "DELTA_METADATA_CHANGED",
    "Protocol changed since last commit": "DELTA_PROTOCOL_CHANGED",
    "concurrent transactions added new data": "DELTA_CONCURRENT_APPEND",
    "concurrent transaction deleted data this operation read": "DELTA_CONCURRENT_DELETE_READ",
    "concurrent transaction deleted the same data": "DELTA_CONCURRENT_DELETE_DELETE",
    "Concurrent transaction failed": "DELTA_CONCURRENT_TRANSACTION",
    "Failed to commit transaction": "DELTA_CONCURRENT_WRITE",
}
"""Its texts, in the order in which to search: the last one begins every conflict, but no refusal of the write
itself."""
_CUT_OFF = frozenset({"INVALID_HANDLE", "INVALID_CURSOR", "OPERATION_CANCELED", "RESPONSE_ALREADY_RECEIVED"})
"""Spark Connect's conditions that do not say how a statement ended (Spark's ``error-conditions.json``)."""
_NO_ANSWER = frozenset(
    {"RpcError", "SparkConnectGrpcException", "Py4JNetworkError", "Py4JError", "TTransportException", "RequestError"}
)
"""Exceptions of gRPC, PySpark, py4j, Thrift and databricks-sql-connector, by name, that carry no condition of the
server."""
_NO_ANSWER_BASES = frozenset({"RpcError", "HTTPError"})
"""Classes of gRPC and urllib3 whose subclasses mean the same."""
_JAVA = re.compile(
    r"^(?:Error running query: )?(?:\[[A-Z_][A-Z0-9_.]*\] (?=[a-z]+\.))?(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): "
)
"""What precedes the message: the class in Java, and the words of a Thrift server."""
_HINTS = {
    "DELTA_METADATA_CHANGED": "another writer changed the table's metadata at the same moment: run the command again",
    "DELTA_PROTOCOL_CHANGED": "another writer changed the table's protocol at the same moment: run the command again",
    "DELTA_CONCURRENT_APPEND": "another writer added files at the same moment: run the command again",
    "DELTA_CONCURRENT_DELETE_READ": "another writer rewrote files at the same moment: run the command again",
    "DELTA_CONCURRENT_TRANSACTION": "another run re-clustered or overwrote the table at the same moment: run it again",
    "DELTA_CONCURRENT_DELETE_DELETE": "another writer rewrote the same files at the same moment: run the command again",
    "DELTA_CONCURRENT_WRITE": "another writer committed at the same moment: run the command again",
    "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION": "rows that were written after the count violate it: run the same command "
    "again, which counts them and says how to find them",
    "DELTA_NEW_NOT_NULL_VIOLATION": "rows that were written after the count hold NULL: run the same command again, "
    "which counts them and says how to find them",
    "DELTA_UNKNOWN_CONFIGURATION": "this Delta version does not know the property: remove it, or upgrade the engine",
}


def engine_error(error: Exception) -> EngineError:
    """The ``EngineError`` for the exception of a statement.

    The condition is the engine's own, else the class of the exception, else the bracketed word at the start of the
    text: classic PySpark gives neither condition nor SQLSTATE for Delta's errors (delta-0).
    """
    if isinstance(error, EngineError):
        return error
    condition = _condition(error)
    hint = _HINTS.get(condition.partition(".")[0], "")
    # The first paragraph of the message, without the JVM's stack trace, at a bounded length
    text = str(error)
    text = text.split("JVM stacktrace:", maxsplit=1)[0]
    lines = [line.strip() for line in text.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("at ", "... ", "Caused by", "py4j."))]
    for index, line in enumerate(kept):
        # "An error occurred while calling o42.sql." precedes the message that py4j received.
        if line.startswith("An error occurred while calling"):
            kept = [line.removeprefix(": ") for line in kept[index + 1 :]]
            break
    message = " ".join(kept[:4])
    while found := _JAVA.match(message):
        message = message[found.end() :]
    return EngineError(
        message[:600] or "the engine gave no reason", hint, condition, unanswered=_is_unanswered(error, condition)
    )


def _is_unanswered(error: Exception, condition: str) -> bool:
    """Whether an error is about the connection or an operation that was cut off, and does not say how the statement
    ended.
    """
    if condition:
        return condition.partition(".")[0] in _CUT_OFF
    # By the class itself: its subclasses are exceptions of the server or of the JVM, whose answer did arrive.
    bases = {base.__name__ for base in type(error).__mro__}
    known = type(error).__name__ in _NO_ANSWER or bool(bases & _NO_ANSWER_BASES)
    return known or isinstance(error, (OSError, EOFError))


def conflict_in(error: Exception) -> str:
    """The condition of the conflict that an exception reports; empty if it reports none.

    A stream fails with a condition of its own; the condition of its batch is in the text.
    """
    condition = _condition(error)
    told = _CONDITION.findall(str(error)[:_LOOK]) if condition == "STREAM_FAILED" else [condition]
    return next((each for each in told if is_conflict(each)), "")


def _condition(error: Exception) -> str:
    get = getattr(error, "getCondition", None)
    own = get() if callable(get) else None
    if isinstance(own, str) and own:
        return own
    named = _CLASSES.get(type(error).__name__)
    if named:
        return named
    if type(error).__name__ == _DELTA_RS:
        return next((condition for text, condition in _DELTA_RS_TEXTS.items() if text in str(error)), "")
    text = str(error)[:_LOOK]
    found, java = _CONDITION.search(text), _JAVA_CLASS.search(text)
    return found.group(1) if found else _CLASSES.get(java.group(1), "") if java else ""
