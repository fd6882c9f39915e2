"""``tablectl init --catalog``: the sections of ``tablectl.yaml`` that connect a catalog (docs/catalogs.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from importlib import metadata
from pathlib import Path

from tablectl.delta.names import DEFAULT_CATALOG
from tablectl.model.errors import UsageError
from tablectl.policies.catalog_config import CONNECTOR, why_no_catalog
from tablectl.support.frozen import frozen
from tablectl.support.json_text import write_json


class CatalogKind(StrEnum):
    """Where the names of tables are looked up."""

    HIVE = "hive"
    GLUE = "glue"
    UNITY = "unity"
    NONE = "none"


@frozen
class CatalogChoice:
    """The options of ``init`` about its catalog."""

    kind: CatalogKind = CatalogKind.NONE
    url: str = ""
    name: str = ""
    driver: Path | None = None
    """The jar of the JDBC driver of a Hive metastore's database."""

    @property
    def catalog(self) -> str:
        """The catalog's name in policies."""
        return self.name or ("lake" if self.kind in {CatalogKind.GLUE, CatalogKind.UNITY} else DEFAULT_CATALOG)


def catalog_choice(kind: str | None, url: str, name: str, driver: Path | None) -> CatalogChoice | None:
    """The options as given; ``None`` without ``--catalog``. Raises ``UsageError``."""
    if kind is None:
        if url or name or driver:
            raise UsageError("--catalog-url, --catalog-name and --catalog-driver go with --catalog", "add --catalog")
        return None
    if kind not in {*CatalogKind}:
        raise UsageError(f"--catalog {kind!r} is unknown", f"known are {', '.join(CatalogKind)}")
    return CatalogChoice(CatalogKind(kind), url, name, None if driver is None else driver.absolute())


_SECRET = re.compile(r"//[^/@]*@|[?&;](?:user|password|user_name|token)=", re.IGNORECASE)
_DRIVERS = {"postgresql": "org.postgresql.Driver", "mysql": "com.mysql.cj.jdbc.Driver"}
_JAR = "https://repo1.maven.org/maven2/org/postgresql/postgresql/42.7.8/postgresql-42.7.8.jar"
_CATALOG_LINE = "#   catalog: spark_catalog       # of names with two parts\n"
_CONF_LINE = "#   conf: {spark.driver.memory: 4g}\n"
_JDO = "spark.hadoop.javax.jdo.option.Connection"


def with_catalog(config: str, choice: CatalogChoice, environ: Mapping[str, str]) -> str:
    """The text of a ``tablectl.yaml`` with its commented ``engine`` section filled in. Raises ``UsageError``."""
    _check(choice)
    match choice.kind:
        case CatalogKind.NONE:
            return config
        case CatalogKind.HIVE:
            conf = "".join(f"    {key}: {write_json(value)}\n" for key, value in _hive(choice).items())
            section = f"engine:\n  conf:                          # a Hive metastore: docs/catalogs.md\n{conf}"
            return config.replace("# engine:\n", section).replace(_CONF_LINE, "")
        case CatalogKind.GLUE:
            return _with_entry(config, choice.catalog, _glue(environ))
        case CatalogKind.UNITY:
            written = _with_entry(config, choice.catalog, f"{{type: unity, url: {write_json(choice.url)}}}")
            return written.replace(_CONF_LINE, _connector(choice.catalog))


def _with_entry(config: str, catalog: str, entry: str) -> str:
    name = write_json(catalog)
    section = f"catalogs: # docs/catalogs.md\n  {name}: {entry}\n\nengine:\n  catalog: {name}\n"
    return config.replace("# engine:\n", section).replace(_CATALOG_LINE, "")


def _connector(catalog: str) -> str:
    """The commented settings of the connector, of which a release has one for each minor version of Spark."""
    try:
        spark = ".".join(metadata.version("pyspark").split(".")[:2])
    except metadata.PackageNotFoundError:
        spark = "4.1"
    lines = (
        "  conf:                        # an apply needs the connector, for your Spark: docs/unity-catalog.md",
        f"    spark.jars.packages: io.unitycatalog:unitycatalog-spark_{spark}_2.13:0.6.0",
        f"    {write_json(f'spark.sql.catalog.{catalog}')}: {CONNECTOR}",
    )
    return "".join(f"# {line}\n" for line in lines)


def _glue(environ: Mapping[str, str]) -> str:
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    return f"{{type: glue, region: {write_json(region)}}}" if region else "{type: glue}"


def _hive(choice: CatalogChoice) -> Mapping[str, str]:
    hive = {"spark.sql.catalogImplementation": "hive"}
    if not choice.url:
        return hive
    if choice.url.startswith("thrift://"):
        return {**hive, "spark.hadoop.hive.metastore.uris": choice.url}
    database = {**hive, f"{_JDO}URL": choice.url}
    if choice.url.startswith("jdbc:derby:"):
        return database
    return {
        **database,
        f"{_JDO}DriverName": _DRIVERS[choice.url.split(":")[1]],
        # Hadoop reads the environment for values of this form (``Configuration``, "Variable Expansion").
        f"{_JDO}UserName": "${env.METASTORE_USER}",
        f"{_JDO}Password": "${env.METASTORE_PASSWORD}",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        # Hive loads the driver by the class path of the JVM; jars of `spark.jars.packages` come too late for it.
        "spark.driver.extraClassPath": str(choice.driver),
    }


def _check(choice: CatalogChoice) -> None:
    kind, url, name = choice.kind, choice.url, choice.name
    if not url.isprintable() or _SECRET.search(url):
        hint = "METASTORE_USER and METASTORE_PASSWORD, or the variable of the token, are read when a command runs"
        raise UsageError("--catalog-url holds a user, a password or control characters", hint)
    if kind in {CatalogKind.NONE, CatalogKind.GLUE} and url:
        raise UsageError(f"--catalog-url does not go with --catalog {kind}", "leave it out")
    if kind is CatalogKind.UNITY and not url.startswith(("https://", "http://")):
        raise UsageError("--catalog unity needs --catalog-url", "for example --catalog-url https://unity.example.com")
    if name and (kind in {CatalogKind.NONE, CatalogKind.HIVE} or why_no_catalog(name)):
        raise UsageError(f"--catalog-name {name!r} cannot be used with --catalog {kind}", "leave it out")
    database = _database(url) if kind is CatalogKind.HIVE else ""
    if database and (choice.driver is None or not choice.driver.is_file()):
        raise UsageError("this metastore needs --catalog-driver, the jar of its JDBC driver", f"download it: {_JAR}")
    if choice.driver is not None and not database:
        raise UsageError("--catalog-driver goes with a jdbc: address of a Hive metastore only", "leave it out")


def _database(url: str) -> str:
    """The database server of a metastore's address; empty if it has none. Raises ``UsageError``."""
    if not url or url.startswith(("thrift://", "jdbc:derby:")):
        return ""
    protocol, _, rest = url.partition(":")
    database = rest.partition(":")[0]
    if protocol != "jdbc" or database not in _DRIVERS:
        hint = "thrift://HOST:9083, jdbc:postgresql://HOST/DATABASE, or jdbc:derby:;databaseName=/FOLDER"
        raise UsageError(f"--catalog-url {url!r} is not a Hive metastore", hint)
    return database
