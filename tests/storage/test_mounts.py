"""Network file systems, told by the types of mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablectl.model.errors import WindowError
from tablectl.storage import records
from tablectl.storage.mounts import linux_mounts, mac_mounts, network_kind, network_mount
from tablectl.storage.records import open_records

MOUNTINFO = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/lake rw,relatime shared:2 - nfs4 filer:/lake rw,vers=4.1
31 22 0:41 / /mnt/lake/scratch rw - tmpfs tmpfs rw
32 22 0:42 / /mnt/my\040bucket rw,nosuid - fuse.s3fs s3fs rw
33 22 0:43 / /mnt/ntfs rw - fuseblk /dev/sdb1 rw
34 22 0:44 / /mnt/gcs rw - fuse gcsfuse rw
35 22 0:45 / /mnt/share rw - cifs //nas/share rw
36 22 0:46 / /mnt/union rw - fuse.mergerfs a:b rw
damaged line
""".strip().splitlines()


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/lake/orders", ""),
        ("/mnt/lake/orders", "nfs4"),
        ("/mnt/lake", "nfs4"),
        ("/mnt/lakehouse", ""),
        ("/mnt/lake/scratch/orders", ""),
        ("/mnt/my bucket/orders", "fuse.s3fs"),
        ("/mnt/gcs/orders", "fuse.gcsfuse"),
        ("/mnt/share/orders", "cifs"),
        ("/mnt/ntfs/orders", ""),
        ("/mnt/union/orders", ""),
    ],
)
def test_a_network_mount_is_recognised_by_its_type(place: str, kind: str) -> None:
    assert network_kind(place, linux_mounts(MOUNTINFO)) == kind


def test_a_mount_over_another_counts() -> None:
    lines = [*MOUNTINFO, "40 22 0:50 / /mnt/lake rw - ext4 /dev/sdc1 rw"]
    assert network_kind("/mnt/lake/orders", linux_mounts(lines)) == ""


def test_macos_says_it_in_words() -> None:
    listed = [
        "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)",
        "//ann@nas/lake on /Volumes/the lake (smbfs, nodev, nosuid, mounted by ann)",
    ]
    assert network_kind("/Volumes/the lake/orders", mac_mounts(listed)) == "smbfs"
    assert network_kind("/Users/ann/lake", mac_mounts(listed)) == ""


def test_a_local_disk_is_none(tmp_path: Path) -> None:
    assert network_mount(str(tmp_path / "not" / "there" / "yet")) == ""


def test_records_are_refused_there_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "network_mount", lambda _place: "nfs4")
    with pytest.raises(WindowError, match=r"network file system \(nfs4\)") as caught:
        open_records(str(tmp_path))
    assert "`state:`" in caught.value.hint
    assert "TABLECTL_STATE" in caught.value.hint
