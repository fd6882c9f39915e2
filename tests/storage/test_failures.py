from __future__ import annotations

import pytest

from tablectl.storage.failures import explain

_GET = "Generic S3 error: Error performing GET http://10.0.0.1:9000/lake/t in 375.8ms, after 5 retries, max_retries: 5"


@pytest.mark.parametrize(
    ("family", "text", "reason", "lasting"),
    [
        ("s3", f"{_GET} - HTTP error: error sending request", "http://10.0.0.1:9000 cannot be reached", True),
        ("s3", "HTTP error: request or response body error: operation timed out", "the store cannot be reached", True),
        ("s3", f"{_GET} - HTTP error: builder error", "plain HTTP, which is not allowed", True),
        (
            "s3",
            "Server returned non-2xx status code: 404 Not Found: <Error><Code>NoSuchBucket</Code></Error>",
            "the bucket does not exist",
            True,
        ),
        ("az", "404 Not Found: <Error><Code>ContainerNotFound</Code></Error>", "the bucket does not exist", True),
        (
            "gs",
            '404: {"error": {"message": "The specified bucket does not exist."}}',
            "the bucket does not exist",
            True,
        ),
        (
            "s3",
            "403 Forbidden: <Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
            "permission denied (AccessDenied: Access Denied)",
            False,
        ),
        (
            "s3",
            "<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>",
            "the credentials are not accepted (ExpiredToken: The token has expired.)",
            True,
        ),
        (
            "s3",
            "<Error><Code>AuthorizationHeaderMalformed</Code><Message>expecting 'eu-west-1'</Message></Error>",
            "the bucket is in another region (AuthorizationHeaderMalformed: expecting 'eu-west-1')",
            True,
        ),
        (
            "s3",
            "Received redirect without LOCATION, this normally indicates …",
            "the bucket is in another region",
            True,
        ),
        ("s3", "<Error><Code>SlowDown</Code></Error>", "the store answered SlowDown", False),
        (
            "gs",
            "Server returned non-2xx status code: 403 Forbidden: {}",
            "the store answered 403 Forbidden",
            False,
        ),
        ("s3", "PUT http://169.254.169.254/latest/api/token: 403", "no credentials were found", True),
        ("gs", "GET http://metadata.google.internal/computeMetadata", "no credentials were found", True),
        (
            "s3",
            "The operation lacked valid … for path External AWS credential provider: SSOTokenLoadError: expired\nx",
            "the credentials cannot be had: expired",
            True,
        ),
        ("s3", "something new\nand its debug output", "something new", False),
        (
            "az",
            "Error performing GET https://me:hunter2@account/c/x?sv=2024&sig=hunter2 in 3ms - odd",
            "Error performing GET https://…@account/c/x?… in 3ms - odd",
            False,
        ),
        (
            "s3",
            "Error performing GET http://me:hunter2@minio:9000/b?x in 1ms - HTTP error: error sending request",
            "http://minio:9000 cannot be reached",
            True,
        ),
        ("s3", "", "Exception", False),
        ("", "Permission denied (os error 13)\nand more", "Permission denied (os error 13)", False),
    ],
)
def test_what_a_failure_means(family: str, text: str, reason: str, lasting: bool) -> None:
    failure = explain(Exception(text), family)
    assert reason in failure.reason
    assert failure.lasting is lasting
    assert "\n" not in failure.reason
    assert "hunter2" not in failure.reason
    assert not lasting or failure.hint
