"""The build of the Unity Catalog server: what it reads from a checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.unity_server import Build, pom

SBT = """
lazy val sparkVersion = "4.2.0"
lazy val jacksonVersion = "2.17.0"
lazy val hadoopVersion = sys.props.getOrElse("hadoopVersion", "3.4.2")
lazy val commonSettings = Seq(
    "org.slf4j" % "slf4j-api" % "2.0.13",
)
lazy val controlApi = (project in file("x"))
      "only.for" % "clients" % "1",
lazy val server = (project in file("server"))
      "com.linecorp.armeria" %  "armeria" % "1.28.4",
      "org.apache.hadoop" % "hadoop-client-api" % hadoopVersion,
      "org.projectlombok" % "lombok" % "1.18.32" % Provided,
      "org.casbin" % "jdbc-adapter" % "2.7.0"
        exclude("com.oracle.database.jdbc", "ojdbc6"),
      "org.mockito" % "mockito-core" % "5.11.0" % Test,
      "net.aichler" % "jupiter-interface" % JupiterKeys.jupiterVersion.value % Test,
lazy val controlModels = (project in file("y"))
      "only.for" % "models" % "1",
"""


def test_the_servers_dependencies_have_the_versions_of_the_checkout() -> None:
    found = re.findall(
        r"<dependency><groupId>([^<]+)</groupId><artifactId>([^<]+)</artifactId><version>([^<]+)<", pom(SBT)
    )
    assert found == [
        ("com.fasterxml.jackson", "jackson-bom", "2.17.0"),
        ("org.slf4j", "slf4j-api", "2.0.13"),
        ("com.linecorp.armeria", "armeria", "1.28.4"),
        ("org.apache.hadoop", "hadoop-client-api", "3.4.2"),
        ("org.projectlombok", "lombok", "1.18.32"),
        ("org.casbin", "jdbc-adapter", "2.7.0"),
    ]
    assert "<artifactId>ojdbc6</artifactId></exclusion>" in pom(SBT)


@pytest.mark.parametrize("text", [None, 'ThisBuild / version := "0.7.0-SNAPSHOT"'])
def test_a_folder_that_is_not_a_release_is_named(tmp_path: Path, text: str | None) -> None:
    if text:
        (tmp_path / "version.sbt").write_text(text)
    with pytest.raises(ValueError, match="not a checkout of a release of Unity Catalog"):
        Build(tmp_path, tmp_path / "into").make()
