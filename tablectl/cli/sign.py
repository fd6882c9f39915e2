"""``tablectl sign``: sign a saved plan."""

from __future__ import annotations

from pathlib import Path

from tablectl.cli.output import Output
from tablectl.model.errors import ExitCode
from tablectl.planning.plan_file import digest_of, load_plan
from tablectl.saved_plan import plan_bytes
from tablectl.signatures import sign, signature_file
from tablectl.written_files import write_file


def sign_command(path: Path, key: Path, out: Output) -> ExitCode:
    """Sign only a plan that this version would apply, so that no other file is signed by mistake."""
    data = plan_bytes(path)
    plan = load_plan(data, str(path))
    signature = signature_file(path)
    write_file(signature, sign(data, path, key))
    out.note(f"signed the plan {digest_of(plan)[:12]}…: {signature}")
    return ExitCode.DONE
