"""Builds the open-source Unity Catalog server and its Spark connector from a checkout, without sbt.

``python -m tools.unity_server SOURCE``: SOURCE is a checkout of github.com/unitycatalog/unitycatalog at the tag
of a release. Maven Central has neither the server nor a connector for every Spark. The versions of their dependencies
are read from the checkout's ``build.sbt``; its modules ``client`` and ``hadoop`` come from Maven Central. Needs a
JDK 17 and Maven. A build that is complete is not repeated.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyspark

ROOT = Path(__file__).parents[1]
BUILDS = ROOT / ".unity"
_VALUE = re.compile(r'^(?:lazy )?val (\w+) = (?:sys\.props\.getOrElse\("\w+", )?"([^"]+)"', re.MULTILINE)
_DEPENDENCY = re.compile(
    r'^ +"([\w.-]+)" +% +"([\w.-]+)" % ("[\w.-]+"|\w+)( % \w+)?((?:\s+exclude\("[\w.-]+", "[\w.-]+"\))*)', re.MULTILINE
)
_EXCLUDED = re.compile(r'exclude\("([\w.-]+)", "([\w.-]+)"\)')
_LOGGING = ("org.slf4j", "slf4j-reload4j")
_SPECS = (
    ("all.yaml", "io.unitycatalog.server.model"),
    ("delta.yaml", "io.unitycatalog.server.delta.model"),
    ("control.yaml", "io.unitycatalog.control.model"),
)
_DIFF_UTILS = "io.github.java-diff-utils:java-diff-utils:4.15"
"""The Scala compiler needs it, and Spark's jars lack it."""


@dataclass(frozen=True)
class Build:
    """The server and the connector of one version, or the place where they will be."""

    source: Path
    place: Path

    @cached_property
    def version(self) -> str:
        """The version that the checkout names. Raises ``ValueError`` if it names none, or one between releases."""
        path = self.source / "version.sbt"
        named = re.search(r'"([\w.-]+)"', path.read_text()) if path.exists() else None
        if named is None or named[1].endswith("SNAPSHOT"):
            msg = f"{self.source} is not a checkout of a release of Unity Catalog, such as the tag v0.6.0"
            raise ValueError(msg)
        return named[1]

    @property
    def connector(self) -> tuple[Path, ...]:
        """The jars that Spark needs (``spark.jars``)."""
        return (self.place / "connector.jar", *sorted((self.place / "modules").glob("unitycatalog-*.jar")))

    def command(self, port: int) -> list[str]:
        """The command that serves on a port, from a folder with ``etc/conf``."""
        classes = f"{self.place / 'classes'}:{self.place / 'lib'}/*"
        logging = "-Dlog4j.configurationFile=etc/conf/server.log4j2.properties"
        main = "io.unitycatalog.server.UnityCatalogServer"
        return ["java", "-Xmx512m", logging, "-cp", classes, main, "-p", str(port)]

    def make(self) -> None:
        """Build, unless that was done. Raises as ``version``, and ``RuntimeError`` if a step fails."""
        done, version = self.place / "done", self.version
        if done.exists() and done.read_text() == version:
            return
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        self._download()
        self._build_server()
        self._build_connector()
        done.write_text(version)

    def _download(self) -> None:
        sbt = (self.source / "build.sbt").read_text()
        (self.place / "pom.xml").write_text(pom(sbt))
        self._run("mvn", "-q", "dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime")
        self._run(
            "mvn",
            "-q",
            "dependency:copy-dependencies",
            "-DoutputDirectory=tools",
            "-DincludeArtifactIds=lombok,jakarta.annotation-api",
        )
        for module in ("client", "hadoop"):
            self._copy(f"io.unitycatalog:unitycatalog-{module}:{self.version}", "modules")
        generator = re.search(
            r'"sbt-openapi-generator" % "([\d.]+)"', (self.source / "project/plugins.sbt").read_text()
        )
        assert generator is not None
        self._copy(f"org.openapitools:openapi-generator-cli:{generator[1]}", "tools")
        self._copy(_DIFF_UTILS, "tools")

    def _build_server(self) -> None:
        for spec, package in _SPECS:
            generator = str(next((self.place / "tools").glob("openapi-generator-cli-*.jar")))
            options = "library=resteasy,useJakartaEe=true,hideGenerationTimestamp=true"
            self._run(
                *("java", "-Xmx1g", "-jar", generator, "generate", "-g", "java", "-o", "models"),
                *(
                    "-i",
                    str(self.source / "api" / spec),
                    "--model-package",
                    package,
                    "--additional-properties",
                    options,
                ),
                *("--global-property", "models,modelTests=false,modelDocs=false"),
            )
        version = self.place / "version" / "io" / "unitycatalog" / "server" / "utils" / "VersionUtils.java"
        version.parent.mkdir(parents=True)
        version.write_text(
            "package io.unitycatalog.server.utils;\n"
            f'public class VersionUtils {{ public static String VERSION = "{self.version}"; }}\n'
        )
        main = self.source / "server" / "src" / "main"
        lombok = str(next((self.place / "tools").glob("lombok-*.jar")))
        processed = ("-proc:full", "-cp", "lib/*:tools/*", "-processorpath", lombok)
        self._javac("classes", processed, _sources(self.place / "models/src/main/java", main / "java"), version)
        shutil.copytree(main / "resources", self.place / "classes", dirs_exist_ok=True)

    def _build_connector(self) -> None:
        spark = Path(pyspark.__file__).parent / "jars"
        main = self.source / "connectors" / "spark" / "src" / "main"
        series = ".".join(pyspark.__version__.split(".")[:2])
        shims = [each for each in main.glob("scala-shims/spark-*") if series in each.name.split("-")]
        java, scala = _sources(main / "java"), _sources(main / "scala", *shims, ending="scala")
        jars = ":".join([f"{spark}/*", *(str(each) for each in (self.place / "modules").glob("*.jar"))])
        every = ":".join(str(each) for each in [*spark.glob("*.jar"), *(self.place / "modules").glob("*.jar")])
        (self.place / "spark").mkdir()
        compiler = ":".join(
            str(each) for each in [*spark.glob("scala-*.jar"), *(self.place / "tools").glob("java-diff*")]
        )
        compile_scala = ("java", "-Xmx2g", "-cp", compiler, "scala.tools.nsc.Main", "-nowarn", "-d", "spark")
        self._run(*compile_scala, "-classpath", every, *map(str, [*java, *scala]))
        self._javac("spark", ("-cp", f"spark:{jars}"), java)
        if (main / "resources").exists():
            shutil.copytree(main / "resources", self.place / "spark", dirs_exist_ok=True)
        self._run("jar", "cf", "connector.jar", "-C", "spark", ".")

    def _javac(self, into: str, options: tuple[str, ...], sources: list[Path], *more: Path) -> None:
        (self.place / "sources").write_text("\n".join(map(str, [*sources, *more])))
        self._run("javac", "--release", "17", "-nowarn", "-d", into, *options, "@sources")

    def _copy(self, artifact: str, folder: str) -> None:
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:copy"
        self._run("mvn", "-q", plugin, f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")

    def _run(self, *command: str) -> None:
        with (self.place / "log").open("a") as log:
            log.write(f"$ {' '.join(command)[:300]}\n")
            log.flush()
            done = subprocess.run(command, cwd=self.place, stdout=log, stderr=log, check=False)
        if done.returncode != 0:
            msg = f"{command[0]} failed, see {self.place / 'log'}"
            raise RuntimeError(msg)


def missing() -> str:
    """What this machine lacks for a build, or an empty string."""
    lacking = [each for each in ("java", "javac", "mvn") if shutil.which(each) is None]
    return f"needs {' and '.join(lacking)}" if lacking else ""


def _sources(*folders: Path, ending: str = "java") -> list[Path]:
    return [each for folder in folders for each in sorted(folder.rglob(f"*.{ending}"))]


def pom(sbt: str) -> str:
    """A Maven project with the dependencies of the server, in the versions of ``build.sbt``."""
    values = dict(_VALUE.findall(sbt))
    common = sbt[: sbt.index("lazy val controlApi = ")]
    server = sbt[sbt.index("lazy val server = ") : sbt.index("lazy val controlModels = ")]
    found: dict[tuple[str, str], str] = {}
    for group, artifact, named, scope, excluded in _DEPENDENCY.findall(common + server):
        version = named.strip('"') if named.startswith('"') else values.get(named)
        if version is None or scope == " % Test" or (group, artifact) in found:
            continue
        exclusions = "".join(
            f"<exclusion><groupId>{left}</groupId><artifactId>{out}</artifactId></exclusion>"
            for left, out in (_LOGGING, *_EXCLUDED.findall(excluded))
        )
        found[group, artifact] = (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            f"<scope>{'provided' if scope == ' % Provided' else 'compile'}</scope><exclusions>{exclusions}</exclusions>"
            "</dependency>"
        )
    jackson = (
        "<dependency><groupId>com.fasterxml.jackson</groupId><artifactId>jackson-bom</artifactId>"
        f"<version>{values['jacksonVersion']}</version><type>pom</type><scope>import</scope></dependency>"
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>tablectl</groupId><artifactId>unity-server</artifactId><version>1</version>"
        f"<dependencyManagement><dependencies>{jackson}</dependencies></dependencyManagement>"
        f"<dependencies>{''.join(found.values())}</dependencies></project>\n"
    )


def main() -> int:
    """0 once the server is built."""
    parser = argparse.ArgumentParser()
    parser.add_argument("source", type=Path, help="a checkout of unitycatalog/unitycatalog at the tag of a release")
    parser.add_argument("--into", type=Path, default=BUILDS)
    given = parser.parse_args()
    if lacking := missing():
        print(lacking)
        return 1
    build = Build(given.source.resolve(), given.into.resolve())
    build.make()
    print(f"Unity Catalog {build.version}: {build.place}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
