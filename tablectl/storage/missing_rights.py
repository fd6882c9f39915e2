"""Which right a refused request lacks, in its provider's words. Pure.

docs/guards.md, "Where the records are stored".
"""

from __future__ import annotations

from urllib.parse import urlsplit

from tablectl.model.errors import WindowError

_AZURE = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_RIGHTS = {
    "s3": {"write": "s3:PutObject", "read": "s3:GetObject", "list": "s3:ListBucket", "delete": "s3:DeleteObject"},
    "gs": {
        "write": "storage.objects.create",
        "read": "storage.objects.get",
        "list": "storage.objects.list",
        "delete": "storage.objects.delete",
    },
    "az": {
        "write": f"{_AZURE}/write",
        "read": f"{_AZURE}/read",
        "list": f"{_AZURE}/read",
        "delete": f"{_AZURE}/delete",
    },
    "": {
        "write": "permission to write",
        "read": "permission to read",
        "list": "permission to list",
        "delete": "permission to delete",
    },
}


class MissingRightError(WindowError):
    """The store refused a request for the lack of a right, which the message names."""


def missing_right(what: str, folder: str, record: str, family: str, named: str = "") -> MissingRightError:
    """The error for a refused request.

    ``what`` is ``write``, ``read``, ``list`` or ``delete``, ``folder`` where the records of a table lie, ``record`` the
    name of one in it, or a part of the folder. ``named`` is the right that the store itself named, if it did.
    """
    right = named or _RIGHTS[family][what]
    part = record.partition("/")[0]
    place = f"{folder}/{part}".rstrip("/")
    return MissingRightError(
        f"the right to {what} records is missing: {right} on {_resource(right, place)}",
        f"give whoever runs this {right} on {_resource(right, folder)} (docs/guards.md lists the rights of writers and "
        "applies), or set `state:` in tablectl.yaml to keep the records in another place",
    )


def _resource(right: str, place: str) -> str:
    """What the right is about. On S3 a listing is a right of the bucket, and the folder a condition of it."""
    if right != "s3:ListBucket":
        return f"{place}/*"
    split = urlsplit(place.replace("#", "%23").replace("?", "%3F"))
    prefix = place.removeprefix(f"{split.scheme}://{split.netloc}").strip("/")
    return f"{split.scheme}://{split.netloc} (s3:prefix {prefix}/*)"
