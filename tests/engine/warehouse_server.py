"""A stand-in for a SQL warehouse: the connector's own Thrift service over HTTP, and three calls of the REST API. Spark
with Delta runs the statements.

What it answers is that of the connector's generated service (``databricks/sql/thrift_api``) and of databricks-sdk's
records (``databricks/sdk/service/sql.py``). That a warehouse lets no client set most of Spark's settings, and answers
``CONFIG_NOT_AVAILABLE``, is in docs.databricks.com ("Configuration parameters", "Error classes"). Whether it takes the
setting of the stamp is not documented: the stand-in does or does not.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from databricks.sql.thrift_api.TCLIService import TCLIService, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from tablectl.engine.sql_catalog import STAMP_KEY

ID = "1234567890abcdef"
_MARK = "statement "
_OK = ttypes.TStatus(ttypes.TStatusCode.SUCCESS_STATUS)
_SET = re.compile(r"SET\s+`?([\w.]+)`?\s*(?:=\s*`?(.*?)`?)?\s*", re.DOTALL)
_STATES = {"RUNNING": 1, "FINISHED": 2, "CANCELED": 3, "FAILED": 5}


def _told(error: Exception) -> str:
    """An error as a warehouse tells it: its text begins with its class."""
    get, text = getattr(error, "getCondition", None), str(error)
    return text if text.startswith("[") or get is None or not get() else f"[{get()}] {text}"


class Statement:
    """One statement, its state in the words of the history of queries, and its rows."""

    def __init__(self, sql: str, tags: dict[str, str]) -> None:
        self.id = str(uuid.uuid4())
        self.sql, self.tags = sql, tags
        self.state = "RUNNING"
        self.rows: list[tuple[Any, ...]] = []
        self.error = ""
        self.over = threading.Event()

    @property
    def handle(self) -> Any:
        guid = uuid.UUID(self.id).bytes
        return ttypes.TOperationHandle(ttypes.THandleIdentifier(guid, guid), 0, True)

    @property
    def shown(self) -> dict[str, Any]:
        """As the history of queries shows it."""
        tags = [{"key": key, "value": value} for key, value in self.tags.items()]
        return {"query_id": self.id, "status": self.state, "is_final": self.over.is_set(), "query_tags": tags}


class Session:
    """A session of Spark, with the few settings that a warehouse has."""

    def __init__(self, spark: Any, *, stamps: bool) -> None:
        self._spark = spark.newSession()
        self._spark.conf.set("spark.sql.variable.substitute", "false")
        # Without stamps, a commit has the id of its statement alone: ``with_ids`` moves it to its place.
        self._stamps = stamps
        self._timeout = 172_800.0

    def run(self, statement: Statement) -> None:
        """Run it to its end, in a thread of the caller."""
        timer = threading.Timer(self._timeout, self.end, (statement,))
        timer.daemon = True
        timer.start()
        self._spark.addTag(statement.id)
        if not self._stamps:
            self._spark.conf.set(STAMP_KEY, _MARK + statement.id)
        try:
            statement.rows = self._rows(statement.sql)
            state = "FINISHED"
        except Exception as error:  # noqa: BLE001  # it is the answer
            statement.error, state = _told(error), "FAILED"
        finally:
            self._spark.removeTag(statement.id)
            timer.cancel()
        if statement.state == "RUNNING":
            statement.state = state
        statement.over.set()

    def end(self, statement: Statement) -> None:
        """Cancel it."""
        if not statement.over.is_set():
            statement.state = "CANCELED"
            self._spark.interruptTag(statement.id)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        found = _SET.fullmatch(sql)
        if found is None:
            return [tuple(row) for row in self._spark.sql(sql).collect()]
        key, value = found[1], found[2]
        if key == "STATEMENT_TIMEOUT":
            self._timeout = float(value)
        elif key == STAMP_KEY and self._stamps:
            self._spark.conf.set(key, value.replace("``", "`"))
        else:
            raise ValueError(f"[CONFIG_NOT_AVAILABLE] Configuration {key} is not available. SQLSTATE: 42K0I")
        return [(key, value)]


def with_ids(table: Path) -> None:
    """Give the commits of a table the ids of their statements, as a Databricks Runtime 18.1 writes them into
    ``commitInfo`` (a log in an issue of delta-io/delta-rs shows one).
    """
    for file in (table / "_delta_log").glob("*.json"):
        text = file.read_text("utf-8")
        changed = re.sub(rf'"userMetadata":"{_MARK}([0-9a-f-]+)"', r'"queryHistoryStatementId":"\1"', text)
        if changed != text:
            file.write_text(changed, "utf-8")
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


class Service:
    """The connector's service (``TCLIService.Iface``), as far as the connector asks."""

    def __init__(self, spark: Any, *, stamps: bool) -> None:
        self._spark, self._stamps = spark, stamps
        self._sessions: dict[bytes, Session] = {}
        self.statements: dict[str, Statement] = {}
        self._of: dict[str, Session] = {}

    def OpenSession(self, req: Any) -> Any:  # noqa: N802  # as Thrift names it
        guid = uuid.uuid4().bytes
        self._sessions[guid] = Session(self._spark, stamps=self._stamps)
        handle = ttypes.TSessionHandle(ttypes.THandleIdentifier(guid, guid))
        version = ttypes.TProtocolVersion.SPARK_CLI_SERVICE_PROTOCOL_V7
        return ttypes.TOpenSessionResp(_OK, version, handle, {}, canUseMultipleCatalogs=True)

    def CloseSession(self, req: Any) -> Any:  # noqa: N802  # as above
        self._sessions.pop(req.sessionHandle.sessionId.guid, None)
        return ttypes.TCloseSessionResp(_OK)

    def ExecuteStatement(self, req: Any) -> Any:  # noqa: N802  # as above
        session = self._sessions[req.sessionHandle.sessionId.guid]
        told = (req.confOverlay or {}).get("query_tags", "")
        statement = Statement(
            req.statement, dict(each.replace("\\:", ":").split(":", 1) for each in told.split(",") if each)
        )
        self.statements[statement.id], self._of[statement.id] = statement, session
        threading.Thread(target=session.run, args=(statement,), daemon=True).start()
        return ttypes.TExecuteStatementResp(_OK, statement.handle)

    def GetOperationStatus(self, req: Any) -> Any:  # noqa: N802  # as above
        found = self._statement(req)
        return ttypes.TGetOperationStatusResp(
            _OK, _STATES[found.state], errorMessage=found.error, displayMessage=found.error
        )

    def CancelOperation(self, req: Any) -> Any:  # noqa: N802  # as above
        self.cancel(self._statement(req).id)
        return ttypes.TCancelOperationResp(_OK)

    def CloseOperation(self, req: Any) -> Any:  # noqa: N802  # as above
        return ttypes.TCloseOperationResp(_OK)

    def FetchResults(self, req: Any) -> Any:  # noqa: N802  # as above
        rows = self._statement(req).rows
        width = len(rows[0]) if rows else 1
        kind = ttypes.TTypeDesc([ttypes.TTypeEntry(ttypes.TPrimitiveTypeEntry(ttypes.TTypeId.STRING_TYPE))])
        schema = ttypes.TTableSchema([ttypes.TColumnDesc(f"c{each}", kind, each + 1) for each in range(width)])
        told = ttypes.TGetResultSetMetadataResp(_OK, schema)
        told.resultFormat = ttypes.TSparkRowSetType.COLUMN_BASED_SET
        columns = [_column([row[each] for row in rows]) for each in range(width)]
        answer = ttypes.TFetchResultsResp(_OK, False, ttypes.TRowSet(0, [], columns))  # no more rows
        answer.resultSetMetadata = told
        return answer

    def _statement(self, req: Any) -> Statement:
        return self.statements[str(uuid.UUID(bytes=req.operationHandle.operationId.guid))]

    def cancel(self, statement: str) -> None:
        """End a statement."""
        self._of[statement].end(self.statements[statement])


def _column(values: list[Any]) -> Any:
    nulls = bytearray((len(values) + 7) // 8)
    for index, value in enumerate(values):
        if value is None:
            nulls[index // 8] |= 1 << index % 8
    texts = ["" if value is None else str(value) for value in values]
    return ttypes.TColumn(stringVal=ttypes.TStringColumn(texts, bytes(nulls)))


class WarehouseServer:
    """A workspace with one warehouse, at ``url``."""

    def __init__(self, spark: Any, *, stamps: bool = True) -> None:
        self.service = Service(spark, stamps=stamps)
        self.drop_answer_to: Callable[[str], bool] = lambda _sql: False
        """Whether the connection breaks instead of the answer to a statement."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:  # as http.server names it
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path.startswith("/api/"):
                    outer.service.cancel(self.path.split("/")[-2])
                    self._answer(b"{}", "application/json")
                    return
                answer = TMemoryBuffer()
                processor = TCLIService.Processor(outer.service)
                processor.process(TBinaryProtocol(TMemoryBuffer(body)), TBinaryProtocol(answer))
                if b"ExecuteStatement" in body[:40] and outer.drop_answer_to(body.decode("utf-8", "replace")):
                    self.close_connection = True
                    return
                self._answer(answer.getvalue(), "application/x-thrift")

            def do_GET(self) -> None:  # as above
                if "/history/queries" in self.path:
                    wanted = re.findall(r"statement_ids=([0-9a-f-]{36})", self.path)
                    shown = [each.shown for each in reversed(outer.service.statements.values())]
                    found = [each for each in shown if not wanted or each["query_id"] in wanted]
                    self._answer(json.dumps({"res": found}).encode(), "application/json")
                else:
                    self._answer(json.dumps({"id": ID, "state": "RUNNING"}).encode(), "application/json")

            def _answer(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as http.server names it
                """Tests print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
