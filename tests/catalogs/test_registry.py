"""Several catalogs behind one look-up, and the credentials that they vend."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from tablectl.catalogs.registry import CatalogReader, Catalogs, CatalogTable, Listed, Operation, SparkCatalog
from tablectl.delta.names import TableName, parse_table
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.errors import BrokenTableError, EngineError, LiveError, TablectlError
from tablectl.storage.object_stores import TemporaryCredentials

START = datetime(2026, 11, 22, 8, tzinfo=UTC)
ORDERS = parse_table("unity.sales.orders")
PLACE = "s3://lake/orders"


@dataclass
class Vending(CatalogReader):
    """A catalog of one table, which counts the credentials that it vends."""

    now: datetime = START
    life: timedelta | None = timedelta(minutes=60)
    asked: list[Operation] = field(default_factory=list)
    family: str = "s3"
    vends: bool = True
    place: str = PLACE

    def schemas(self, catalog: str) -> tuple[str, ...]:
        return ("sales",)

    def tables(self, catalog: str, schema: str, like: str = "*") -> Listed:
        return {ORDERS: CatalogTable(ORDERS, self.place)}

    def load(self, name: TableName) -> CatalogTable:
        if name != ORDERS:
            raise LiveError(f"{name.text} does not exist")
        return CatalogTable(name, self.place)

    def entry(self, name: TableName) -> CatalogEntry:
        return CatalogEntry(managed=True)

    def credentials(self, table: CatalogTable, operation: Operation) -> TemporaryCredentials:
        self.asked.append(operation)
        expires = None if self.life is None else self.now + self.life
        return TemporaryCredentials(self.family, {"token": f"{operation}-{len(self.asked)}"}, expires, (PLACE,))


class Engine:
    """Spark's own catalog."""

    def location(self, table: TableName) -> str:
        return f"/w/{table.parts[1]}"

    def schemas(self, catalog: str) -> tuple[str, ...]:
        return ("web",)

    def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
        return {
            TableName(catalog, (schema, "seen")): "/w/seen",
            TableName(catalog, (schema, "view")): LiveError("a view"),
        }


@pytest.fixture
def vending() -> Vending:
    return Vending()


@pytest.fixture
def catalogs(vending: Vending) -> Catalogs:
    found = Catalogs({"unity": vending}, SparkCatalog(Engine), now=lambda: vending.now)
    found.location(ORDERS)
    return found


def token(catalogs: Catalogs, *, write: bool = False) -> str:
    provider = catalogs.provider(PLACE, write=write)
    assert provider is not None
    made: str = provider()["token"]
    return made


def test_each_name_is_looked_up_in_its_catalog(catalogs: Catalogs) -> None:
    assert catalogs.schemas("UNITY") == ("sales",)
    assert catalogs.tables("unity", "sales") == {ORDERS: PLACE}
    assert catalogs.schemas("other") == ("web",)
    found = catalogs.tables("other", "web")
    assert found[parse_table("other.web.seen")] == "/w/seen"
    assert isinstance(found[parse_table("other.web.view")], LiveError)
    assert catalogs.location(parse_table("other.web.x")) == "/w/x"


def test_spark_starts_only_for_its_own_catalogs(vending: Vending) -> None:
    def starts() -> Engine:
        raise EngineError("no Spark here")

    catalogs = Catalogs({"unity": vending}, SparkCatalog(starts))
    assert catalogs.location(ORDERS) == PLACE
    with pytest.raises(EngineError, match="no Spark here"):
        catalogs.location(parse_table("spark_catalog.sales.orders"))


def test_only_tables_of_a_vending_catalog_get_vended_credentials(catalogs: Catalogs, vending: Vending) -> None:
    assert catalogs.provider("s3://lake/others") is None
    assert catalogs.provider("s3a://lake//orders/") is not None
    vending.vends = False
    assert catalogs.provider(PLACE) is None


def test_credentials_are_held_by_table_and_operation_and_renewed_before_they_expire(
    catalogs: Catalogs, vending: Vending
) -> None:
    assert [token(catalogs), token(catalogs)] == ["READ-1", "READ-1"]
    assert token(catalogs, write=True) == "READ_WRITE-2"
    vending.now += timedelta(minutes=57)
    assert token(catalogs) == "READ-1"
    vending.now += timedelta(minutes=2)
    assert token(catalogs) == "READ-3"
    assert token(catalogs, write=True) == "READ_WRITE-4"


def test_obstore_gets_an_expiry_before_the_true_one(catalogs: Catalogs, vending: Vending) -> None:
    provider = catalogs.provider(PLACE)
    assert provider is not None
    assert provider()["expires_at"] == START + timedelta(minutes=58)
    vending.life = None
    vending.now += timedelta(minutes=60)
    assert provider()["expires_at"] <= vending.now + timedelta(minutes=10)


def test_credentials_that_expired_already_are_refused(catalogs: Catalogs, vending: Vending) -> None:
    vending.life = timedelta(seconds=-1)
    with pytest.raises(LiveError, match="expired already"):
        token(catalogs)


def test_a_catalog_that_vends_nothing_is_an_error_and_not_the_environment(catalogs: Catalogs, vending: Vending) -> None:
    vending.family = ""
    with pytest.raises(LiveError, match="vends no credentials") as caught:
        token(catalogs)
    assert "credentials: environment" in caught.value.hint


def test_many_readers_of_one_table_ask_once(catalogs: Catalogs, vending: Vending) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _n: token(catalogs), range(50))) == {"READ-1"}
    assert vending.asked == ["READ"]


def test_a_planned_table_that_moved_is_never_read(vending: Vending) -> None:
    catalogs = Catalogs({"unity": vending}, SparkCatalog(Engine))
    vending.place = "s3://evil/orders"
    catalogs.expect(ORDERS, PLACE)
    for call in (lambda: catalogs.provider(PLACE), lambda: catalogs.managed(PLACE)):
        with pytest.raises(LiveError, match=r"another table now: s3://evil/orders instead of s3://lake/orders"):
            call()
    catalogs.expect(parse_table("unity.sales.gone"), "s3://lake/gone")
    with pytest.raises(LiveError, match="does not exist"):
        catalogs.provider("s3://lake/gone")
    catalogs.expect(parse_table("spark_catalog.sales.x"), "s3://lake/x")
    assert catalogs.provider("s3://lake/x") is None


@pytest.mark.parametrize("place", ["/data/\ud800", "/data/\x00x", "s3://lake/\n", "s3://lake/" + "a" * 5000])
def test_a_location_that_no_table_can_have_is_refused_for_its_table_alone(place: str) -> None:
    catalogs = Catalogs({"unity": Vending(place=place)}, Vending())
    assert isinstance(catalogs.tables("unity", "sales")[ORDERS], BrokenTableError)
    with pytest.raises(BrokenTableError, match="the location in its catalog has"):
        catalogs.location(ORDERS)
