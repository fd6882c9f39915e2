"""The supported object stores and the options for their connections. Names only, so that every package can
import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FAMILIES: Mapping[str, str] = MappingProxyType(
    {"s3": "s3", "gs": "gs", "az": "az", "azure": "az", "adl": "az", "abfs": "az", "abfss": "az"}
)
"""URI scheme → store kind (``s3a`` and ``s3n`` count as ``s3`` everywhere)."""

PREFIXES: Mapping[str, str] = MappingProxyType({"s3": "AWS_", "gs": "GOOGLE_", "az": "AZURE_"})
"""Store kind → prefix of its environment variables: the S3 option ``region`` is ``AWS_REGION`` in the environment."""

CONCURRENCY = 128
"""How many requests a bucket gets at a time, unless the configuration says otherwise (benchmarks/store_latency.py)."""

NO_STORES: Mapping[str, Mapping[str, str]] = MappingProxyType({})
"""No options for any store kind."""

CONNECTION = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "timeout",
        "user_agent",
    }
)
"""Options of the HTTP connection, the same for each store kind."""

OPTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "s3": CONNECTION
        | {
            "checksum_algorithm",
            "default_region",
            "disable_bulk_delete",
            "disable_tagging",
            "endpoint",
            "endpoint_url_sts",
            "imdsv1_fallback",
            "metadata_endpoint",
            "region",
            "request_payer",
            "role_arn",
            "role_session_name",
            "s3_express",
            "server_side_encryption",
            "skip_signature",
            "sse_bucket_key_enabled",
            "sse_kms_key_id",
            "unsigned_payload",
            "virtual_hosted_style_request",
        },
        "gs": CONNECTION | {"application_credentials", "base_url", "service_account", "skip_signature"},
        "az": CONNECTION
        | {
            "account_name",
            "authority_host",
            "client_id",
            "credential_type",
            "disable_tagging",
            "endpoint",
            "federated_token_file",
            "msi_endpoint",
            "msi_resource_id",
            "object_id",
            "skip_signature",
            "tenant_id",
            "use_azure_cli",
            "use_emulator",
            "use_fabric_endpoint",
        },
    }
)
"""Store kind → permitted options, by obstore's names. Options that control conditional puts are excluded."""

SECRETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "s3": MappingProxyType(
            {
                "access_key_id": "AWS_ACCESS_KEY_ID",
                "secret_access_key": "AWS_SECRET_ACCESS_KEY",
                "session_token": "AWS_SESSION_TOKEN",
                "sse_customer_key_base64": "AWS_SSE_CUSTOMER_KEY_BASE64",
                "token": "AWS_SESSION_TOKEN",
            }
        ),
        "gs": MappingProxyType(
            {"bearer_token": "GOOGLE_BEARER_TOKEN", "service_account_key": "GOOGLE_SERVICE_ACCOUNT_KEY"}
        ),
        "az": MappingProxyType(
            {
                "access_key": "AZURE_STORAGE_ACCOUNT_KEY",
                "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
                "client_secret": "AZURE_CLIENT_SECRET",
                "encryption_key": "AZURE_ENCRYPTION_KEY",
                "fabric_session_token": "AZURE_FABRIC_SESSION_TOKEN",
                "sas_key": "AZURE_STORAGE_SAS_KEY",
                "sas_token": "AZURE_STORAGE_SAS_KEY",
                "token": "AZURE_STORAGE_TOKEN",
            }
        ),
    }
)
"""Options that are not allowed in files → the environment variable to use instead. A secret in Git is leaked."""
