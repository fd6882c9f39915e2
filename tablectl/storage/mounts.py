"""Places on disks: their real names, and whether they are on a network file system, by the type of their mount.

The protocol of the protected window requires that a process that lists a directory sees everything that others put into
it before. Clients of NFS, SMB and similar systems list from caches of their own: nfs(5), "Directory entry caching" and
the options ``acdirmin`` and ``lookupcache``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from tablectl.delta.locations import canonical_location
from tablectl.storage.folders import LinkError, refuse_link, refused_link

NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "smb", "afs", "afpfs", "ncpfs", "coda", "webdav", "davfs", "davfs2"),
        *("ceph", "glusterfs", "lustre", "gpfs", "beegfs", "pvfs2", "orangefs", "ocfs2", "gfs2", "efs"),
    }
)
"""Types of mounts that several machines share. Some of these systems keep client caches consistent, but the protocol
was not tested there.
"""
_NETWORK_FUSE = re.compile(
    r"(?:.*[._-])?(?:sshfs|davfs2?|glusterfs|ceph-fuse|s3fs|goofys|mountpoint-s3|mount-s3|gcsfuse|gcsfs|blobfuse2?"
    r"|adlfs|rclone|juicefs|seaweedfs|weed|alluxio|dbfs|wsfs|hdfs|hadoop-fuse-dfs|moosefs|mfs|lizardfs|cvmfs2?)"
)
"""The second part of a type such as ``fuse.sshfs``, or the name of the source if the type is only ``fuse``."""

_ESCAPED = re.compile(r"\\([0-7]{3})")
_MAC_LINE = re.compile(r"(?P<source>.*) on (?P<point>/.*) \((?P<kind>[^,)]+)[^()]*\)")


def network_mount(place: str) -> str:
    """The type of the network file system of a directory, which need not exist; empty if it is on none.

    Also empty if the operating system does not provide the type. A link in the last place is not followed.
    """
    there = Path(place)
    while True:
        try:
            return _of_device(there.lstat().st_dev, str(there))
        except OSError:
            if there == there.parent:
                return ""
            there = there.parent


@lru_cache(maxsize=256)
def _of_device(_device: int, place: str) -> str:
    """Cached by device and place: a mount that changes at a place changes its device."""
    return network_kind(os.path.realpath(place), _mounts())


def network_kind(place: str, mounts: Mapping[str, str]) -> str:
    """The type of the network file system of a real path; empty if it is on none. ``mounts`` maps mount points to
    types.
    """
    points = [point for point in mounts if place == point or place.startswith(point.rstrip("/") + "/")]
    kind = mounts[max(points, key=len)] if points else ""
    family, _, name = kind.partition(".")
    is_network = kind in NETWORK or (family in {"fuse", "macfuse", "osxfuse"} and _NETWORK_FUSE.fullmatch(name))
    return kind if is_network else ""


def _mounts() -> Mapping[str, str]:
    try:
        if sys.platform == "darwin":
            listed = subprocess.run(["/sbin/mount"], capture_output=True, text=True, timeout=10, check=True)
            return mac_mounts(listed.stdout.splitlines())
        with Path("/proc/self/mountinfo").open(encoding="utf-8", errors="surrogateescape") as file:
            return linux_mounts(file)
    except (OSError, subprocess.SubprocessError):
        return {}


def linux_mounts(lines: Iterable[str]) -> dict[str, str]:
    """Mount point → type, from the lines of ``/proc/self/mountinfo`` (proc_pid_mountinfo(5)). Later mounts cover
    earlier ones. A mount of type ``fuse`` is qualified by its source: ``fuse.s3fs``.
    """
    found: dict[str, str] = {}
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, named = before.split(" "), after.split(" ")
        if len(fields) > 4 and named[0]:
            kind = named[0]
            if kind == "fuse" and len(named) > 1:
                kind = f"fuse.{Path(_plain(named[1])).name}"
            found[_plain(fields[4])] = kind
    return found


def mac_mounts(lines: Iterable[str]) -> dict[str, str]:
    """Mount point → type, from the output of ``mount`` on macOS: ``server:/x on /Volumes/x (nfs, nodev)``."""
    matches = (_MAC_LINE.fullmatch(line.strip()) for line in lines)
    return {match["point"]: match["kind"] for match in matches if match}


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def real_place(location: str) -> str:
    """The canonical form of a place, with links on a local disk resolved, so that two names of one table do not count
    as two tables: where a job writes that was given this location.
    """
    place = canonical_location(location)
    # Not `Path.resolve`, which raises where a link leads to itself: that table cannot be read, and all others can.
    return os.path.realpath(place) if place.startswith("/") else place


def own_place(location: str) -> str:
    """As ``real_place``, for a table that a policy or a person names. Links above its folder are resolved, the folder
    itself is not: whoever may replace it by a link must not bring another table under its policy. Raises ``LiveError``
    if it is a link.
    """
    place = canonical_location(location)
    if not place.startswith("/"):
        return place
    if "/." in place:
        place = os.path.normpath(place)  # as ``Folder.at``
    try:
        refuse_link(place)
    except LinkError as error:
        raise refused_link(error, place) from error
    above, _, name = place.rpartition("/")
    return f"{os.path.realpath(above or '/').rstrip('/')}/{name}"
