"""Files that strangers may have put there: none of them blocks, or is read beyond its limit."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tablectl.support.files import NotRegularError, TooLargeError, open_regular, read_regular


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1000)
    assert read_regular(tmp_path / "a", 1000) == b"x" * 1000


def test_an_empty_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert read_regular(tmp_path / "a", 1000) == b""


def test_a_byte_too_many(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1001)
    with pytest.raises(TooLargeError, match="larger than 1 kB"):
        read_regular(tmp_path / "a", 1000)


def test_a_file_that_reports_no_size_is_bounded_too() -> None:
    with pytest.raises(TooLargeError):
        read_regular("/proc/self/maps", 10)


def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    with pytest.raises(NotRegularError, match="not a regular file"):
        open_regular(tmp_path / "a")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_or_a_link_to_one_is_not_read(tmp_path: Path, device: str) -> None:
    (tmp_path / "a").symlink_to(device)
    for path in (Path(device), tmp_path / "a"):
        with pytest.raises(NotRegularError):
            read_regular(path, 1000)


def test_a_socket_is_not_read(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "a"))
        with pytest.raises(NotRegularError):
            read_regular(tmp_path / "a", 1000)


def test_a_directory_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
        read_regular(tmp_path, 1000)


def test_links_are_followed_only_where_asked(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_regular(tmp_path / "b", 10) == b"x"
    with pytest.raises(OSError, match="symbolic link"):
        read_regular(tmp_path / "b", 10, follow=False)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(NotRegularError):
            open_regular(tmp_path / "a")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
