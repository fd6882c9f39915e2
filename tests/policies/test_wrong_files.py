"""Each wrong file of ``wrong_files`` with everything that users read about it, in ``wrong_files/messages.txt``.

``TABLECTL_GOLDEN=write pytest tests/policies/test_wrong_files.py`` writes the messages again; read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablectl.model.errors import InputError
from tablectl.policies.policy_document import read_specs
from tablectl.policies.read_config import FILE, load_config
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables

_FOLDER = Path(__file__).parent / "wrong_files"
_GOLDEN = _FOLDER / "messages.txt"
_FILES = sorted(_FOLDER.glob("*/*.yaml"))
_NAMES = [f"{file.parent.name}/{file.name}" for file in _FILES]


def said_about(file: Path, folder: Path) -> str:
    """Everything wrong in a file, as users see it."""
    (folder / FILE).write_bytes(file.read_bytes())
    reading = ValueReader(Variables(), "oss", "spark_catalog", [])
    with pytest.raises(InputError) as caught:
        load_config(folder, {}) if file.parent.name == "config" else read_specs(
            [("p.yaml", file.read_bytes())], reading
        )
    return "\n".join(str(each) for each in caught.value.problems)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The messages by the name of the file."""
    if os.environ.get("TABLECTL_GOLDEN") == "write":
        with pytest.MonkeyPatch.context() as patched:
            patched.chdir(tmp_path_factory.mktemp("wrong"))
            said = (f"# {name}\n{said_about(file, Path())}\n" for name, file in zip(_NAMES, _FILES, strict=True))
            _GOLDEN.write_text("\n".join(said), encoding="utf-8")
    parts = _GOLDEN.read_text(encoding="utf-8").removeprefix("# ").split("\n# ")
    return {name: text.rstrip("\n") for name, _, text in (part.partition("\n") for part in parts)}


@pytest.mark.parametrize("file", _FILES, ids=_NAMES)
def test_what_is_said_about_a_wrong_file(
    file: Path, golden: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said_about(file, Path()) == golden[f"{file.parent.name}/{file.name}"]


def test_no_secret_is_in_any_message() -> None:
    assert "hunter2" in "".join(file.read_text(encoding="utf-8") for file in _FILES)
    assert "hunter2" not in _GOLDEN.read_text(encoding="utf-8")
