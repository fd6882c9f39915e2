"""docs/generated/settings.md lists every setting."""

from __future__ import annotations

from tablectl.policies.config import config_schema
from tests.docs.publish_settings import PAGE, page, rows


def test_the_page_is_that_of_the_settings() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m tests.docs.publish_settings`"


def test_a_row_has_the_key_and_everything_that_overrides_it() -> None:
    row = next(line for line in page().splitlines() if line.startswith("| `window.canary` "))
    assert "`TABLECTL_WINDOW_CANARY` | `--canary`, `canary` | a whole number, 0 to 100,000 | `0` |" in row


def test_every_setting_says_what_it_is() -> None:
    assert [keys for keys, about, _ in rows(config_schema()) if not about.get("description")] == []
