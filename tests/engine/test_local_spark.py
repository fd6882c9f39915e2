"""One ``stores:`` section configures the log reader and a local Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablectl.engine import local_spark as module
from tablectl.engine.local_spark import hadoop_version, own_programs, store_conf, store_packages

CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def test_options_of_the_log_reader_become_settings_of_s3a() -> None:
    given = {"s3": {"endpoint": "http://minio:9000", "region": "eu-west-1", "allow_http": "true"}}
    assert store_conf(given, {}) == {
        "spark.hadoop.fs.s3.impl": S3A,
        "spark.hadoop.fs.s3n.impl": S3A,
        "spark.hadoop.fs.s3a.aws.credentials.provider": CHAIN,
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
        "spark.hadoop.fs.s3a.endpoint": "http://minio:9000",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def test_aws_itself_needs_a_region_alone_and_what_is_missing_comes_from_the_environment() -> None:
    conf = store_conf({"s3": {"region": "eu-west-1"}}, {})
    assert "spark.hadoop.fs.s3a.endpoint" not in conf
    assert "spark.hadoop.fs.s3a.path.style.access" not in conf
    environ = {"AWS_ENDPOINT_URL": "https://store.example", "AWS_REGION": "elsewhere"}
    conf = store_conf({"s3": {"region": "eu-west-1"}}, environ)
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "https://store.example"
    assert conf["spark.hadoop.fs.s3a.endpoint.region"] == "eu-west-1"
    assert conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "true"


def test_anonymous_reading_and_virtual_hosts() -> None:
    conf = store_conf({"s3": {"skip_signature": "true", "virtual_hosted_style_request": "true"}}, {})
    assert conf["spark.hadoop.fs.s3a.aws.credentials.provider"].endswith("AnonymousAWSCredentialsProvider")
    assert conf["spark.hadoop.fs.s3a.path.style.access"] == "false"


@pytest.mark.parametrize("stores", [{}, {"s3": {}}, {"az": {"account_name": "lake"}}])
def test_without_options_for_s3_nothing_is_set(stores: dict[str, dict[str, str]]) -> None:
    assert store_conf(stores, {"AWS_ENDPOINT_URL": "http://x"}) == {}
    assert store_packages(stores, {}) == ""


def test_the_package_is_that_of_the_hadoop_of_pyspark_unless_the_user_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "hadoop_version", lambda: "3.5.0")
    stores = {"s3": {"region": "eu-west-1"}}
    assert store_packages(stores, {}) == "org.apache.hadoop:hadoop-aws:3.5.0"
    assert store_packages(stores, {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.4.1"}) == ""
    assert store_packages(stores, {"spark.driver.extraClassPath": "/jars/hadoop-aws-3.5.0.jar"}) == ""


def test_the_hadoop_of_the_installed_pyspark_is_known() -> None:
    pytest.importorskip("pyspark")
    assert hadoop_version().startswith("3.")


def test_a_checkout_does_not_bring_the_programs_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of ``tablectl.yaml`` is one below the root, where a branch has ``bin/spark-submit``."""
    from pyspark.find_spark_home import _find_spark_home

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spark-submit").write_text("#!/bin/sh\n")
    (tmp_path / "jars").mkdir()
    (tmp_path / "lake").mkdir()
    monkeypatch.chdir(tmp_path / "lake")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    assert _find_spark_home() == str(tmp_path), "the attack works where PySpark looks for it"
    with own_programs():
        assert Path(_find_spark_home()) == pyspark_home()
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert not {"SPARK_HOME", "PYTHONSAFEPATH"} & os.environ.keys()
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with own_programs():
        assert _find_spark_home() == "/opt/spark"
    assert os.environ["SPARK_HOME"] == "/opt/spark"


def pyspark_home() -> Path:
    import pyspark

    return Path(str(pyspark.__file__)).parent
