"""Winners read from the commits that Delta wrote, so that the rules are asked about what really happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from tablectl.delta.protocol import Protocol
from tablectl.model.commit_contents import CommittedTransaction, File, Kind, MetadataChange, ProtocolChange

_KINDS = {
    "STREAMING UPDATE": Kind.STREAMING_APPEND,
    "UPDATE": Kind.UPDATE,
    "DELETE": Kind.DELETE,
    "MERGE": Kind.MERGE,
    "OPTIMIZE": Kind.OPTIMIZE,
    "REORG": Kind.REORG,
    "ROW TRACKING BACKFILL": Kind.BACKFILL,
    "ROW TRACKING UNBACKFILL": Kind.UNBACKFILL,
    "SET TBLPROPERTIES": Kind.SET_PROPERTIES,
    "UNSET TBLPROPERTIES": Kind.UNSET_PROPERTIES,
    "CLUSTER BY": Kind.CLUSTER_BY,
    "ADD COLUMNS": Kind.ADD_COLUMNS,
    "ADD CONSTRAINT": Kind.ADD_CONSTRAINT,
    "DROP CONSTRAINT": Kind.DROP_CONSTRAINT,
    "DROP FEATURE": Kind.DROP_FEATURE,
    "UPGRADE PROTOCOL": Kind.UPGRADE_PROTOCOL,
    "RESTORE": Kind.RESTORE,
    "CREATE OR REPLACE TABLE": Kind.REPLACE_TABLE,
    "REPLACE TABLE": Kind.REPLACE_TABLE,
}
_NUMBERED = ("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping")
_TAGS: dict[str, Literal["identity", "row tracking"]] = {
    "rowTrackingEnablementOnly": "row tracking",
    "delta.identity.schemaUpdate": "identity",
}


class Log:
    """A table's commits, in order."""

    def __init__(self, path: Path) -> None:
        self._path = path / "_delta_log"

    def newest(self) -> int:
        return max(int(file.stem) for file in self._path.glob("*.json") if file.stem.isdigit())

    def files(self, version: int) -> dict[str, dict[str, str | None]]:
        """The live files of a version, in the order they came: path → partition values."""
        live: dict[str, dict[str, str | None]] = {}
        for each in range(version + 1):
            actions = self.actions(each)
            added = {action["add"]["path"]: action["add"]["partitionValues"] for action in actions if "add" in action}
            for action in actions:
                if "remove" in action and action["remove"]["path"] not in added:
                    live.pop(action["remove"]["path"], None)
            live |= added  # a file that got a deletion vector keeps its place
        return live

    def actions(self, version: int) -> list[dict[str, Any]]:
        text = (self._path / f"{version:020}.json").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def last(self, kind: str, before: int) -> dict[str, Any]:
        """The newest ``metaData`` or ``protocol`` before a version."""
        for version in range(before - 1, -1, -1):
            for action in self.actions(version):
                if kind in action:
                    found: dict[str, Any] = action[kind]
                    return found
        raise AssertionError(f"no {kind} before version {before}")

    def committed(self, version: int) -> CommittedTransaction:
        """One commit, as the rules take it."""
        actions = self.actions(version)
        kinds = {kind for action in actions for kind in action}
        info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        files = [action[kind] for action in actions for kind in action if kind in {"add", "remove"}]
        columns = self.last("metaData", version + 1)["partitionColumns"]
        return CommittedTransaction(
            kind=self._changed_column(version) if info["operation"].startswith("CHANGE COLUMN") else _kind(info),
            metadata=self._metadata(version, info) if "metaData" in kinds else None,
            protocol=self._protocol(version) if "protocol" in kinds else None,
            domains=tuple(action["domainMetadata"]["domain"] for action in actions if "domainMetadata" in action),
            app_ids=tuple(action["txn"]["appId"] for action in actions if "txn" in action),
            added=_files(actions, "add", columns),
            removed=_files(actions, "remove", columns),
            blind=bool(info.get("isBlindAppend")),
            data_change=any(file["dataChange"] for file in files),
            traces=("deletionVectors",) if any(file.get("deletionVector") for file in files) else (),
        )

    def _changed_column(self, version: int) -> Kind:
        """Comments, wider types and other changes of columns share an operation name."""
        old, new = (
            json.loads(self.last("metaData", each)["schemaString"])["fields"] for each in (version, version + 1)
        )
        if [field["name"] for field in old] != [field["name"] for field in new]:
            return Kind.CHANGE_COLUMN
        same = [field["type"] for field in old] == [field["type"] for field in new]
        return Kind.COMMENT_COLUMN if same else Kind.WIDEN_COLUMN

    def _metadata(self, version: int, info: dict[str, Any]) -> MetadataChange:
        new = self.last("metaData", version + 1)
        old = self.last("metaData", version)
        before, after = old["configuration"], new["configuration"]
        changed = {key: value for key, value in after.items() if before.get(key) != value}
        return MetadataChange(
            sets=tuple(sorted(changed.items())),
            renews=tuple(sorted(set(changed) & set(before))),
            removes=tuple(sorted(set(before) - set(after))),
            schema="same" if new["schemaString"] == old["schemaString"] else _schema_change(old, new),
            beyond=any(new.get(field) != old.get(field) for field in ("id", "name", "partitionColumns")),
            described=new.get("description") != old.get("description"),
            tag=next((tag for key, tag in _TAGS.items() if info.get("tags", {}).get(key) == "true"), ""),
        )

    def _protocol(self, version: int) -> ProtocolChange:
        new, old = _features(self.last("protocol", version + 1)), _features(self.last("protocol", version))
        return ProtocolChange(adds=tuple(sorted(new - old)), removes=tuple(sorted(old - new)))


def _kind(info: dict[str, Any]) -> Kind:
    operation = info["operation"]
    if operation != "WRITE":
        return _KINDS[operation]
    if info["operationParameters"].get("mode") == "Overwrite":
        return Kind.OVERWRITE
    return Kind.APPEND if info.get("isBlindAppend") else Kind.READING_INSERT


def _files(actions: list[dict[str, Any]], kind: str, columns: list[str]) -> tuple[File, ...]:
    found = [action[kind] for action in actions if kind in action]
    return tuple(File(each["path"], tuple(each["partitionValues"].get(column) for column in columns)) for each in found)


def _schema_change(old: dict[str, Any], new: dict[str, Any]) -> Any:
    before, after = json.loads(old["schemaString"])["fields"], json.loads(new["schemaString"])["fields"]
    same = [{**field, "metadata": None} for field in before] == [{**field, "metadata": None} for field in after]
    return "mapping" if same and "delta.columnMapping.mode" in new["configuration"] else "other"


def _features(action: dict[str, Any]) -> set[str]:
    """What a protocol supports, also by its numbers."""
    listed = frozenset({*action.get("readerFeatures", []), *action.get("writerFeatures", [])})
    protocol = Protocol(action["minReaderVersion"], action["minWriterVersion"], writer_features=listed)
    return {*listed, *(feature for feature in _NUMBERED if protocol.has(feature))}
