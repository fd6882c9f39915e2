"""What a local Spark needs: a Java that is recent enough, and the settings and packages for object stores. Standard
library only: the Makefile runs it first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

LEAST = 17
"""The oldest Java that Spark 4 starts with."""
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""Environment, web identity, profile, container, machine: the order in which the log reader looks, too."""
_VERSION = re.compile(r"hadoop-client-api-(?P<version>[0-9][0-9.]*)\.jar")


def find_java(environ: Mapping[str, str]) -> str | None:
    """The ``java`` that Spark starts: the one in ``JAVA_HOME``, else the first on the path."""
    home = environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if _may_exist(java) else None
    return shutil.which("java", path=environ.get("PATH"))


def _may_exist(java: Path) -> bool:
    try:
        return java.is_file()
    except OSError:  # no permission: running it says so
        return True


def parse_version(text: str) -> int | None:
    """The major version in the output of ``java -version``: ``17.0.15`` is 17, ``1.8.0_392`` is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def java_problem(environ: Mapping[str, str]) -> str | None:
    """One sentence with the problem of this machine's Java and its fix; ``None`` if there is no problem."""
    java = find_java(environ)
    if java is None:
        where = (
            f"JAVA_HOME={environ['JAVA_HOME']} has no bin/java" if environ.get("JAVA_HOME") else "no java on the path"
        )
        return f"Spark needs Java {LEAST} or newer, and there is none: {where}; install a JDK or set JAVA_HOME."
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Spark needs Java {LEAST} or newer, and {java} does not run: {error}."
    version = parse_version(answer.stderr + answer.stdout)
    if version is None:
        return f"Spark needs Java {LEAST} or newer, and {java} does not say its version."
    if version < LEAST:
        return f"Spark needs Java {LEAST} or newer, and {java} is Java {version}; install a newer JDK or set JAVA_HOME."
    return None


def store_conf(stores: Mapping[str, Mapping[str, str]], environ: Mapping[str, str]) -> Mapping[str, str]:
    """The Spark settings that follow from ``stores:`` in ``tablectl.yaml``; none without options for S3.

    Hadoop's S3A serves ``s3a://`` only; the same class is set for ``s3://`` and ``s3n://``, because the log reader
    takes all three for one store. The names of the settings are those of Hadoop 3.5, "Connecting to an Amazon S3
    Bucket".
    """
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


if __name__ == "__main__":
    sys.exit(java_problem(os.environ))
