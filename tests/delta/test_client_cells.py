"""Twenty cells of the client data, on the release of deltalake that is installed; and where each cell was read."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from tablectl.delta.clients import known_clients
from tools.client_cells import CELLS, contradicted, drawn
from tools.client_features import CLIENTS, Release, delta_rs, kernel, since, spark


@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_cells_hold_on_the_installed_deltalake(seed: int) -> None:
    pytest.importorskip("deltalake")
    cells = drawn(metadata.version("deltalake"), seed)
    assert len(cells) == CELLS
    assert contradicted(sys.executable, cells) == []


def test_each_cell_has_a_file_at_a_tag_or_a_person_who_read_it() -> None:
    for each in known_clients():
        versions = {*each.reads.values(), *(each.writes or {}).values()}
        without = versions - set(each.read_from)
        assert not without or each.by_hand or each.name in CLIENTS, each.name
        assert all("@" in place and ":" in place for place in each.read_from.values())
        assert each.as_of


def test_a_part_under_cfg_counts_only_if_the_python_package_is_built_with_it() -> None:
    text = """
pub static INSTANCE: Lazy<ProtocolChecker> = Lazy::new(|| {
    let mut reader_features = HashSet::new();
    // reader_features.insert(ReaderFeatures::ColumnMapping);
    let mut writer_features = HashSet::new();
    writer_features.insert(WriterFeatures::AppendOnly);
    #[cfg(feature = "datafusion")]
    {
        writer_features.insert(WriterFeatures::Invariants);
    }
    #[cfg(feature = "other")]
    writer_features.insert(WriterFeatures::ChangeDataFeed);
    writer_features.insert(WriterFeatures::TimestampWithoutTimezone);

});
"""
    assert delta_rs(text, 'features = ["datafusion"]').writes == {"appendOnly", "invariants", "timestampNtz"}
    assert delta_rs(text, "").writes == {"appendOnly", "timestampNtz"}
    assert delta_rs(text, "").reads == frozenset()


def test_kernel_writes_what_its_class_or_its_base_does_not_refuse() -> None:
    text = """
  private static class ConstraintsFeature extends TableFeature.LegacyWriterFeature {
    ConstraintsFeature() {
      super("checkConstraints", /* minWriterVersion = */ 3);
    }

    public boolean hasKernelWriteSupport(Metadata metadata) {
      return !hasCheckConstraints(metadata);
    }
  }

  private static class VariantBase extends TableFeature.ReaderWriterFeature {
    public boolean hasKernelWriteSupport(Metadata metadata) {
      return false; // TODO
    }
  }

  private static class VariantTypeFeature extends VariantBase {
    VariantTypeFeature() {
      super("variantType");
    }
  }

  X = new VariantBase("variantType-preview");

  private static class RowTrackingFeature extends TableFeature.WriterFeature {
    RowTrackingFeature() {
      super("rowTracking", /* minWriterVersion = */ 7);
    }
  }
"""
    found = kernel(text, "")
    assert found.reads == {"variantType", "variantType-preview"}
    assert found.writes == {"rowTracking"}
    assert found.depends == {"checkConstraints"}


def test_features_of_tests_are_not_those_of_users() -> None:
    text = """
   var features: Set[TableFeature] = Set(
      AppendOnlyTableFeature)
    if (DeltaUtils.isTesting) {
      features ++= Set(RowTrackingFeature)
object AppendOnlyTableFeature
  extends LegacyWriterFeature(name = "appendOnly", minWriterVersion = 2)
object RowTrackingFeature extends WriterFeature(name = "rowTracking")
"""
    assert spark(text, "").writes == {"appendOnly"}


def test_a_feature_counts_from_the_release_after_the_last_that_lacks_it() -> None:
    has, lacks = Release(writes=frozenset({"clustering"})), Release()
    found = {"1": (has, ""), "2": (lacks, ""), "3": (has, ""), "4": (has, "")}
    assert since(found, lambda each: each.writes) == {"clustering": "3"}
