"""The trace of a declared value from YAML to SQL."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.trace_value import trace


def test_a_value_is_followed_from_the_bytes_of_its_policy_to_its_statement(tmp_path: Path) -> None:
    seen = trace(tmp_path)
    forms = list(seen.forms)
    assert (forms[0], forms[-1]) == ("bytes", "Statement")
    assert {"GivenValue", "Layer", "ResolvedValue", "Policy", "Change", "PlannedOperation", "SQL"} <= {*forms}
    assert "LiveTable" not in seen.forms
    assert {"policies/merge_layers.py", "planning/derive_statements.py"} <= seen.files.keys()
    assert not any(file.startswith(("log/", "reports/")) for file in seen.files)
    assert {"commands/project.py"} <= seen.passing - seen.files.keys()
    assert sys.getprofile() is None


def test_the_way_is_no_longer_than_it_was(tmp_path: Path) -> None:
    """See docs/decisions/0033-few-records-from-yaml-to-sql.md and, for what pydantic reads and writes on the way,
    docs/decisions/0042-the-chosen-libraries.md.
    """
    seen = trace(tmp_path)
    assert len(seen.forms) <= 18
    assert len(seen.files) <= 29
