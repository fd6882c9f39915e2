"""The bill of materials names every package of the locks, at its version and with its hashes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tablectl.version import __version__
from tools.sbom import LOCKS, ROOT, bill, main, packages

LOCK = f"""\
click==8.5.1 \\
    --hash=sha256:{"a" * 64} \\
    --hash=sha256:{"b" * 64}
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:{"c" * 64}
"""


def test_a_lock_is_read_with_markers_and_hashes() -> None:
    assert list(packages(LOCK)) == [
        ("click", "8.5.1", "", ["a" * 64, "b" * 64]),
        ("colorama", "0.4.6", "sys_platform == 'win32'", ["c" * 64]),
    ]


@pytest.mark.parametrize("line", ["git+https://evil.example/x", "click>=8", "click==8.5.1", "-e ."])
def test_a_line_that_pins_nothing_is_not_left_out(line: str) -> None:
    with pytest.raises(ValueError, match="a line that is not understood"):
        list(packages(f"{LOCK}{line}\n"))


def test_what_each_installation_needs_is_required_and_extras_are_optional() -> None:
    found = bill({"base": LOCK, "spark": f"{LOCK}py4j==1 \\\n    --hash=sha256:{'d' * 64}\n"}, "1.2.3")
    assert {each["name"]: each["scope"] for each in found["components"]} == {
        "click": "required",
        "colorama": "required",
        "py4j": "optional",
        "tablectl-guard": "required",
    }
    assert found["metadata"]["component"]["purl"] == "pkg:pypi/tablectl@1.2.3"
    refs = {each["bom-ref"] for each in found["components"]}
    assert set(found["dependencies"][0]["dependsOn"]) == refs


def test_the_bill_of_this_version_has_every_package_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    assert main([str(tmp_path / "one.json")]) == main([str(tmp_path / "two.json")]) == 0
    text = (tmp_path / "one.json").read_text()
    assert text == (tmp_path / "two.json").read_text()
    names = {each["purl"] for each in json.loads(text)["components"]}
    locked = {
        f"pkg:pypi/{name}@{version}"
        for lock in LOCKS
        for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+)", (ROOT / "locks" / f"{lock}.lock").read_text())
    }
    assert names == locked | {f"pkg:pypi/tablectl-guard@{__version__}"}
    assert main([]) == 64
