"""Whether an apply may do with a table's records all that it has to, found out before anything is done."""

from __future__ import annotations

import logging

from tablectl.model.errors import WindowError
from tablectl.storage.failures import MissingRightError
from tablectl.storage.records import RecordStore

_NO_RECORD = "none"
"""The name of no lease record and of no guard."""

_log = logging.getLogger(__name__)


def check_rights(store: RecordStore) -> None:
    """Raises ``MissingRightError`` unless the holder of a lease may also delete in ``lease/``, and list, get and
    delete in ``guards/``. To take the lease was to put, get and list in ``lease/``.

    Four small requests, about names that no record has. A store deletes what is not there, and refuses that too where
    the right is missing. Other failures of the store are no answer: whatever comes next meets them.
    """
    try:
        store.delete(f"lease/{_NO_RECORD}")
        store.names("guards/")
        store.read(f"guards/{_NO_RECORD}")
        store.delete(f"guards/{_NO_RECORD}")
    except MissingRightError:
        raise
    except WindowError as error:
        _log.debug("the rights on %s are not known: %s", store, error.message)
