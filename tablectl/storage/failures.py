"""Explains the failures of an object store, and the rights that are missing. Pure.

obstore's messages are long and describe attempts, not remedies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from tablectl.delta.credentials import scrub
from tablectl.model.errors import WindowError
from tablectl.model.store_options import PREFIXES

_CODE = re.compile(r"<Code>([^<]{1,100})</Code>(?:\s*<Message>([^<]{1,300})</Message>)?")
_BULK = re.compile(r"DeleteObjects request failed for key \S{1,2000}?: (.{0,300}?) \(code: (\w{1,100})\)", re.DOTALL)
"""S3 answers that it deleted all but some of many objects, and obstore deletes one in that way too."""
_NAMED = re.compile(r"not authorized to perform: ([a-z0-9-]{1,30}:\w{1,60})|does not have ([a-zA-Z.]{1,60}) access")
_STATUS = re.compile(r"Server returned (?:non-2xx status code|error response): (\d{3}[^:\n]{0,50})")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist")
_METADATA = ("169.254.169.254", "169.254.170.2", "fd00:ec2::254", "metadata.google.internal", "metadata/identity")
"""Where a cloud machine requests its identity. A request to these hosts means that no other credentials were found."""
_PROVIDER = re.compile(r"External \w+ credential provider: (?:(\w+): )?(.*)")
_HOST = re.compile(r"(?:GET|PUT|POST|HEAD|DELETE) (https?://)(?:[^/\s@]*@)?([^/\s]+)")
_QUERY = re.compile(r"(?<=\?)\S+")
"""The query of a URL. It can be a signature that grants access to the bucket."""
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


@dataclass(frozen=True)
class Failure:
    """Why a request failed. ``reason`` is a clause without its subject."""

    reason: str
    hint: str = ""
    lasting: bool = False
    """Whether every further request to the bucket would fail in the same way, and often as slowly."""
    denied: bool = False
    """Whether the store knows the caller and denies the request."""
    right: str = ""
    """The missing right, if the store named it."""


def explain(error: Exception, family: str) -> Failure:
    """A store's error in one line, without credentials, and with a fix if one is known. ``family`` is "" for a local
    disk.
    """
    text = scrub(str(error))
    first = (text.splitlines() or [""])[0] or type(error).__name__
    if not family:
        return Failure(first, denied=isinstance(error, PermissionError))
    first = _QUERY.sub("…", first)
    if provided := _PROVIDER.search(text):
        # What a catalog does not vend, no variable replaces: its error has a hint of its own.
        hint = "" if provided[1] == "LiveError" else credentials_hint(family)
        return Failure(f"the credentials cannot be had: {provided[2]}", hint, lasting=True)
    if any(name in text for name in _METADATA):
        return Failure("no credentials were found", credentials_hint(family), lasting=True)
    if any(name in text for name in _NO_BUCKET):
        return Failure("the bucket does not exist", "check the location and the endpoint", lasting=True)
    if code := _code(text):
        return _answered(*code, family)
    if "builder error" in text:
        hint = f"set stores.{family}.allow_http: true in tablectl.yaml, or use https"
        return Failure("the endpoint speaks plain HTTP, which is not allowed", hint, lasting=True)
    if "without LOCATION" in text:
        return Failure("the bucket is in another region", f"set stores.{family}.region in tablectl.yaml", lasting=True)
    if "error sending request" in text or "timed out" in text:
        host = _HOST.search(text)
        hint = f"check the network, the proxy, and stores.{family} in tablectl.yaml"
        return Failure(f"{host[1] + host[2] if host else 'the store'} cannot be reached", hint, lasting=True)
    status = _STATUS.search(text)
    # An answer to HEAD has nothing but the status.
    denied = status is not None and status[1].startswith("403")
    return Failure(f"the store answered {status[1].strip()}" if status else first, denied=denied)


def credentials_hint(family: str) -> str:
    """How to provide credentials for a store kind."""
    ways = {
        "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE with boto3 installed",
        "gs": "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
        "az": "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_CLIENT_ID with its secret, or use_azure_cli: true",
    }
    return f"{ways[family]}: see docs/object-stores.md"


def _code(text: str) -> tuple[str, str] | None:
    """The code and the message of an answer."""
    if code := _CODE.search(text):
        return code[1], code[2] or ""
    bulk = _BULK.search(text)
    return (bulk[2], bulk[1]) if bulk else None


def _answered(code: str, message: str, family: str) -> Failure:
    told = f"{code}: {message}" if message and message != code else code
    if code in {"AccessDenied", "AllAccessDisabled", "AuthorizationPermissionMismatch", "AuthorizationFailure"}:
        named = _NAMED.search(message)
        return Failure(f"permission denied ({told})", denied=True, right=(named[1] or named[2]) if named else "")
    if code in {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthenticationFailed"}:
        return Failure(f"the credentials are not accepted ({told})", credentials_hint(family), lasting=True)
    if code in {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}:
        hint = f"set stores.{family}.region in tablectl.yaml or {PREFIXES[family]}REGION"
        return Failure(f"the bucket is in another region ({told})", hint, lasting=True)
    return Failure(f"the store answered {told}")


class ForeignRecordError(WindowError):
    """In place of a record, or of a directory of records, there is a link or something else that tablectl did not make.
    It is refused until a person removes it.
    """


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
