"""One commit stream: if several drivers cannot commit exclusively, an apply must run in the writers' own driver.

On S3 and on local disks Delta's default log store does not prevent two drivers from writing the same version: the later
commit replaces the earlier one, ours or a writer's (docs/object-stores.md).
"""

from __future__ import annotations

from tablectl.applying.context import StopTableError
from tablectl.applying.run_report import RunOutcome
from tablectl.delta.dialects import dialect_of
from tablectl.engine.port import CommitDriver, Engine

_S3 = frozenset({"s3", "s3a", "s3n"})
_DISK = "file"
_EXCLUSIVE = frozenset({"S3DynamoDBLogStore"})


def check_scheme(engine: Engine, location: str) -> None:
    """Raise ``StopTableError`` if the engine has no file system for a location that the log reader can read. Raises
    ``EngineError`` if the engine does not answer.
    """
    scheme = location.partition(":")[0].lower()
    if location.startswith("/") or scheme == _DISK or engine.opens(scheme) is not False:
        return
    hint = (
        "set `stores: {s3: {region: …}}` in tablectl.yaml: it configures a local session, too (docs/object-stores.md)"
        if scheme in _S3
        else f"add the file system of {scheme}:// to the engine: its package and settings under `engine.conf`"
    )
    raise StopTableError(RunOutcome.REFUSED, f"the engine has no file system for {scheme}:// locations", hint)


def check_commits(engine: CommitDriver, location: str, *, exclusive: bool, only: bool = True) -> bool:
    """Whether commits to a table on a local disk may be lost, ours or a writer's: this deserves a warning.

    On S3 it raises ``StopTableError`` instead. ``exclusive`` is what the configuration states, ``only`` whether this
    engine is the only one of the run: of several, at most one can be the driver that the writers use. Raises
    ``EngineError`` if the engine does not report its log store.
    """
    # As the engine sees it, because the scheme selects the log store: s3a and s3 are two schemes.
    scheme = _DISK if location.startswith("/") else location.partition(":")[0].lower()
    if scheme not in _S3 | {_DISK} or exclusive or dialect_of(engine.dialect).exclusive_commits:
        return False
    # A session passed in may be any session. On S3, where a commit could be lost, the caller must state that it is the
    # writers' own.
    if only and engine.shared and (engine.stated or scheme == _DISK):
        return False
    store = engine.log_store(scheme)
    if store.rpartition(".")[2] in _EXCLUSIVE:
        return False
    if scheme == _DISK:
        return True
    what = f"the log store {store}" if store else "Delta's default log store"
    message = f"on S3, {what} does not keep this driver and the writers' from overwriting each other's commits"
    raise StopTableError(RunOutcome.REFUSED, message, _hint(scheme))


def _hint(scheme: str) -> str:
    return (
        'run it in the writers\' own driver (`spark=` with `driver="shared"`, `--remote`), or set '
        f"`spark.delta.logStore.{scheme}.impl: io.delta.storage.S3DynamoDBLogStore` here and in every writer "
        "(docs/object-stores.md); if commits are exclusive all the same, say so with `engine.exclusive_commits: true`"
    )
