"""The Spark settings that follow from ``stores:`` in ``tablectl.yaml``, for a local session.

Hadoop's S3A serves ``s3a://`` only; the same class is set for ``s3://`` and ``s3n://``, because the log reader takes
all three for one store. The names of the settings are those of Hadoop 3.5, "Connecting to an Amazon S3 Bucket".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""Environment, web identity, profile, container, machine: the order in which the log reader looks, too."""
_VERSION = re.compile(r"hadoop-client-api-(?P<version>[0-9][0-9.]*)\.jar")


def store_conf(stores: Mapping[str, Mapping[str, str]], environ: Mapping[str, str]) -> Mapping[str, str]:
    """The settings for the options of each kind of store; none without options for S3."""
    given = stores.get("s3")
    if not given:
        return {}

    def option(name: str, *variables: str) -> str:
        found = (environ.get(each) for each in (*variables, f"AWS_{name.upper()}"))
        return given.get(name) or next((each for each in found if each), "")

    endpoint, region = option("endpoint", "AWS_ENDPOINT_URL"), option("region", "AWS_DEFAULT_REGION")
    hosted = option("virtual_hosted_style_request").lower()
    conf = {
        "spark.hadoop.fs.s3.impl": _S3A,
        "spark.hadoop.fs.s3n.impl": _S3A,
        "spark.hadoop.fs.s3a.aws.credentials.provider": _ANONYMOUS if _is_true(option("skip_signature")) else _CHAIN,
    }
    if region:
        conf["spark.hadoop.fs.s3a.endpoint.region"] = region
    if endpoint:
        conf["spark.hadoop.fs.s3a.endpoint"] = endpoint
        conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] = "false" if endpoint.startswith("http://") else "true"
    if endpoint or hosted:
        conf["spark.hadoop.fs.s3a.path.style.access"] = "false" if _is_true(hosted) else "true"
    return conf


def store_packages(stores: Mapping[str, Mapping[str, str]], conf: Mapping[str, str]) -> str:
    """The Maven coordinates of S3A for the Hadoop of the installed pyspark; empty if it is not needed or there."""
    theirs = f"{conf.get('spark.jars.packages', '')} {conf.get('spark.jars', '')}"
    theirs += conf.get("spark.driver.extraClassPath", "")
    version = hadoop_version()
    if not stores.get("s3") or not version or "hadoop-aws" in theirs:
        return ""
    return f"org.apache.hadoop:hadoop-aws:{version}"


def hadoop_version() -> str:
    """The version of Hadoop that the installed pyspark brings; empty if it brings none."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return ""
    names = (each.name for each in Path(found.origin).parent.glob("jars/hadoop-client-api-*.jar"))
    return next((match["version"] for name in names if (match := _VERSION.fullmatch(name))), "")


def _is_true(text: str) -> bool:
    return text.lower() in {"1", "true"}
