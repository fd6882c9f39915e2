"""``tablectl status`` as a function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from typing import Any

from tablectl.api import Engines
from tablectl.lake_status import StatusOptions, collect_status
from tablectl.log.blame import MOST_COMMITS
from tablectl.policies.config import load_config
from tablectl.policies.repository import Paths, load_any, variables_for
from tablectl.policies.requested_tables import requested_tables
from tablectl.reports.status import LakeStatus
from tablectl.selection import Selection
from tablectl.workflow import store_options


def status(
    paths: Paths = None,
    *,
    tables: Sequence[str] = (),
    debt: bool = False,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    directory: str | Path = ".",
    spark: Any = None,
    look_back: int = MOST_COMMITS,
) -> LakeStatus:
    """The state of every table of the policies, and of ``tables``: identifiers and patterns without a policy.

    Other arguments and errors as in ``plan``. ``debt`` counts files and unclustered data from the whole log.
    """
    config = load_config(Path(directory), os.environ, env)
    given = variables_for(config, variables or {}, os.environ)
    texts = [tables] if isinstance(tables, str) else list(tables)
    others = requested_tables(texts, config.engine.catalog, given) if texts else None
    options = StatusOptions(
        stores=store_options(config),
        dialect=config.engine.dialect,
        env=config.environment,
        severities=config.severities,
        look_back=look_back,
        debt=debt,
        now=int(time() * 1000),
    )
    with Engines(config, spark) as engines:
        specs = load_any(paths, config, directory, variables or {}, os.environ)
        return collect_status(specs, others, Selection(), engines.start, options)
