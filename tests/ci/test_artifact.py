"""Artifacts as an attacker keeps them."""

from __future__ import annotations

import io
import stat
import struct
import tracemalloc
import warnings
import zipfile

import pytest

from tablectl.ci import reviewed_plan
from tablectl.ci.reviewed_plan import unpack
from tablectl.model.errors import PlanFileError


def archive(*files: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, data in files:
            opened.writestr(name, data, method)
    return stream.getvalue()


def refused(data: bytes) -> str:
    with pytest.raises(PlanFileError) as found:
        unpack(data, "the plan of run 7")
    return found.value.message


def entry(name: str, mode: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    return info


def test_the_plan_is_read_and_nothing_else() -> None:
    data = archive(
        ("plan.json", b"{}"),
        ("plan.json.sig", b"signed"),
        ("plan.md", b"report"),
        ("../../../etc/passwd", b"evil"),
        ("/plan.json", b"evil"),
        ("run/plan.json", b"evil"),
        ("./plan.json", b"evil"),
        ("PLAN.JSON", b"evil"),
        ("C:\\plan.json", b"evil"),
        ("x\n::error::y", b"evil"),
    )
    assert unpack(data, "the plan") == b"{}"


@pytest.mark.parametrize(
    "name", [entry("plan.json", stat.S_IFLNK | 0o777), "plan.json/", entry("plan.json", stat.S_IFIFO)]
)
def test_a_link_a_directory_or_a_pipe_in_place_of_the_plan(name: str | zipfile.ZipInfo) -> None:
    assert "is not a plain file" in refused(archive((name, b"")))


def test_a_file_that_is_there_twice() -> None:
    assert "holds plan.json twice" in refused(archive(("plan.json", b"shown"), ("plan.json", b"applied")))


def test_an_artifact_without_a_plan() -> None:
    assert refused(archive(("plan.md", b"failed"))) == (
        "the plan of run 7 is an artifact without plan.json: the run made a report and no plan"
    )


def test_a_bomb_is_unpacked_no_further_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewed_plan, "MAX_BYTES", 1 << 20)
    bomb = archive(("plan.json", bytes(200 << 20)))
    assert len(bomb) < 300_000
    tracemalloc.start()
    assert "is larger than 1,048,576 bytes" in refused(bomb)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_a_declared_size_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviewed_plan, "MAX_BYTES", 1 << 20)
    bomb = archive(("plan.json", bytes(8 << 20)))
    small = bomb.replace(struct.pack("<L", 8 << 20), struct.pack("<L", 10))
    assert "cannot be unpacked" in refused(small)


def test_a_million_files_are_not_listed() -> None:
    data = archive(*((f"{number}", b"") for number in range(1_001)))
    assert "more than 1,000 files" in refused(data)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(method: int) -> None:
    assert "is not a plain file" in refused(archive(("plan.json", b"{}"), method=method))


def test_an_encrypted_plan() -> None:
    data = bytearray(archive(("plan.json", b"{}")))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert "is not a plain file" in refused(bytes(data))


def test_every_cut_and_every_changed_byte_is_a_plan_or_a_refusal() -> None:
    plan = b'{"a": 1}' * 10
    whole = archive(("plan.json", plan), ("plan.md", b"report"))
    damaged = [whole[:end] for end in range(len(whole))]
    damaged += [
        whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :] for at in range(len(whole)) for flip in (1, 128, 255)
    ]
    for data in damaged:
        try:
            found = unpack(data, "the plan")
        except PlanFileError:
            continue
        assert found == plan, "the checksum finds every other content"
