"""The collector of garbage is paused, and runs again as before."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from tablectl.garbage import collection_paused


@pytest.mark.parametrize("before", [True, False])
def test_the_collector_is_as_before_also_after_an_error(before: bool) -> None:
    running = gc.isenabled()
    try:
        (gc.enable if before else gc.disable)()
        with suppress(KeyError), collection_paused():
            assert not gc.isenabled()
            with collection_paused():
                pass
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is before
    finally:
        (gc.enable if running else gc.disable)()
