"""Which right is missing, in the words of whoever can give it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablectl.storage.failures import MissingRightError, explain, missing_right
from tablectl.storage.records import open_records


@pytest.mark.parametrize(
    ("family", "folder", "what", "told"),
    [
        ("s3", "s3://b/t/_tablectl", "delete", "s3:DeleteObject on s3://b/t/_tablectl/guards/*"),
        ("s3", "s3://b/t/_tablectl", "list", "s3:ListBucket on s3://b (s3:prefix t/_tablectl/guards/*)"),
        ("gs", "gs://b/t/_tablectl", "write", "storage.objects.create on gs://b/t/_tablectl/guards/*"),
        ("az", "abfss://c@a.dfs/t/_tablectl", "delete", "blobs/delete on abfss://c@a.dfs/t/_tablectl/guards/*"),
        ("", "/lake/t/_tablectl", "delete", "permission to delete on /lake/t/_tablectl/guards/*"),
    ],
)
def test_a_right_has_its_providers_name(family: str, folder: str, what: str, told: str) -> None:
    error = missing_right(what, folder, "guards/a.0.json", family)
    assert told in error.message
    assert f"{folder.removeprefix('s3://b/')}/*" in error.hint


@pytest.mark.parametrize(
    ("family", "text", "right"),
    [
        (
            "s3",
            (
                "Generic S3 error: DeleteObjects request failed for key t/_tablectl/guards/none: Access Denied "
                "(code: AccessDenied)"
            ),
            "",
        ),
        (
            "s3",
            (
                "403 Forbidden: <Error><Code>AccessDenied</Code><Message>User: arn:a is not authorized to "
                "perform: kms:GenerateDataKey on resource: arn:aws:kms:1</Message></Error>"
            ),
            "kms:GenerateDataKey",
        ),
        (
            "gs",
            (
                "403 Forbidden: <Error><Code>AccessDenied</Code><Message>a@b.iam does not have storage.objects.delete "
                "access to the Google Cloud Storage object.</Message></Error>"
            ),
            "storage.objects.delete",
        ),
        ("s3", "Server returned non-2xx status code: 403 Forbidden: ", ""),
    ],
)
def test_a_refusal_is_distinguished_from_other_failures(family: str, text: str, right: str) -> None:
    failure = explain(Exception(text), family)
    assert (failure.denied, failure.right) == (True, right)


def test_credentials_that_are_not_accepted_lack_no_right() -> None:
    text = "403 Forbidden: <Error><Code>InvalidAccessKeyId</Code><Message>no</Message></Error>"
    assert not explain(Exception(text), "s3").denied


def test_on_a_disk_a_folder_that_cannot_be_written_refuses_to_delete_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = open_records(str(tmp_path))
    records.delete("guards/none")
    records.create("guards/a.0.json", b"")
    records.delete("guards/none")
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # the tests may run as root, who may do everything
    with pytest.raises(MissingRightError, match=r"permission to delete on .*/_tablectl/guards/") as missing:
        records.delete("guards/none")
    assert str(tmp_path) in missing.value.message
