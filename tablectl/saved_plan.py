"""Reads plan files, and checks the signatures that ``tablectl.yaml`` requires."""

from __future__ import annotations

import os
from pathlib import Path

from tablectl.files import read_regular
from tablectl.model.errors import PlanFileError, TablectlError
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import MAX_BYTES, load_plan
from tablectl.policies.config import signers_of
from tablectl.signatures import check_signature


def required_signers(plan: Path | None, directory: str | Path, *, required: bool) -> Path | None:
    """The allowed-signers file for a plan, as ``signers_of``. Raises ``PlanFileError`` where only signed plans are
    applied and there is no plan file, which alone can be signed.
    """
    signers = signers_of(Path(directory), os.environ, required=required)
    if signers is not None and plan is None:
        raise PlanFileError(
            "only signed plans may be applied, and this is no plan file",
            "run `tablectl plan --out FILE`, have that reviewed and signed by `tablectl sign FILE --key KEY`, apply it",
        )
    return signers


def read_plan(path: Path, *, to_apply: bool = True, signers: Path | None = None) -> Plan:
    """The plan in a file. With ``signers`` its signature is checked before anything else, on the bytes that are read.

    Raises ``TablectlError`` where it cannot be read, and ``PlanFileError`` where it was edited or damaged, or is not
    signed as it must be.
    """
    data = plan_bytes(path)
    if signers is not None:
        check_signature(data, path, signers)
    return load_plan(data, str(path), to_apply=to_apply)


def plan_bytes(path: Path) -> bytes:
    """What is in a plan file. Raises ``TablectlError`` where it cannot be read."""
    try:
        return read_regular(path, MAX_BYTES)
    except OSError as error:
        raise TablectlError(
            f"{path}: {error.strerror or error}", "plans are written by `tablectl plan --out FILE`"
        ) from error
