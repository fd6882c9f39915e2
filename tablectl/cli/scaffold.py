"""What ``tablectl init`` writes: the files of a working repository, as texts."""

from __future__ import annotations

from collections.abc import Mapping

from tablectl.version import __version__

POLICIES = "policies/tables.yaml"

_CONFIG = """# How tablectl works here. Single values may be variables too: TABLECTL_ENGINE_CATALOG is engine.catalog.
policies: policies

# engine:
#   catalog: spark_catalog       # of names with two parts
#   dialect: oss                 # or databricks: the dialect of the statements
#   remote: sc://spark:15002     # a Spark Connect server; else a local session, with `conf`
#   conf: {spark.driver.memory: 4g}
# window:
#   drain: 300                   # seconds that writers get to end, each time a gate tightens
#   allow: [{cron: "0 22 * * 1-5", duration: 6h, timezone: Europe/Berlin}]
# reports:
#   mask: ["*password*", "*token*"]    # property keys whose values no report shows
"""

_EXAMPLE = """# What tables shall be. What no line names is not managed and never changed.
# From live tables: tablectl import 'lake.sales.*' --output policies/sales.yaml
version: 1

tables: {}
#  lake.sales.orders:
#    isolation: Serializable
#    deletion_vectors: enabled
#    clustering: [customer_id, order_date]
#    properties:
#      owner.team: payments
"""

_PLANS = """# Saved plans are made for one state of the tables: they travel as artifacts, not in Git.
*
!.gitignore
"""

_WORKFLOW = """name: tablectl

on:
  pull_request:
    paths: ["policies/**", tablectl.yaml, .github/workflows/tablectl.yml]
  push:
    branches: [main]
    paths: ["policies/**", tablectl.yaml]
  schedule:
    - cron: "17 5 * * *"

permissions:
  contents: read

env:
  TABLECTL: "==VERSION"
  # Credentials for the tables' logs, by the names of each store, for example:
  # AWS_ACCESS_KEY_ID: ${{ secrets.AWS_ACCESS_KEY_ID }}

jobs:
  plan:
    if: github.event_name == 'pull_request'
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install "tablectl${TABLECTL}"
      - run: tablectl validate
      - name: plan
        run: tablectl plan --out plans/plan.json --report "${RUNNER_TEMP}/plan.md"
      - name: show the plan on the run's page
        if: always()
        run: test ! -f "${RUNNER_TEMP}/plan.md" || cat "${RUNNER_TEMP}/plan.md" >> "${GITHUB_STEP_SUMMARY}"
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: plan
          path: plans/plan.json
          if-no-files-found: ignore

  apply:
    if: github.event_name == 'push'
    runs-on: ubuntu-latest
    concurrency:
      group: tablectl-apply
      cancel-in-progress: false # an apply that runs is never cut short
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - uses: actions/setup-java@v4
        with:
          distribution: temurin
          java-version: "17"
      - run: pip install "tablectl[spark]${TABLECTL}"
      - name: plan
        run: tablectl plan --out plans/plan.json
      - name: apply
        run: tablectl apply plans/plan.json

  drift:
    if: github.event_name == 'schedule'
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install "tablectl${TABLECTL}"
      - name: fail where a table is not as declared
        run: tablectl drift
"""

_PRE_COMMIT = """repos:
  - repo: local
    hooks:
      - id: tablectl-validate
        name: tablectl validate
        entry: tablectl validate
        language: python
        additional_dependencies: ["tablectl==VERSION"]
        files: ^(policies/.*\\.ya?ml|tablectl\\.yaml)$
        pass_filenames: false
"""


def scaffold(policies: str = "") -> Mapping[str, str]:
    """The files by their paths in the repository; ``policies`` is the text of the first ones, an example without it."""
    return {
        "tablectl.yaml": _CONFIG,
        POLICIES: policies or _EXAMPLE,
        "plans/.gitignore": _PLANS,
        ".github/workflows/tablectl.yml": _WORKFLOW.replace("VERSION", __version__),
        ".pre-commit-config.yaml": _PRE_COMMIT.replace("VERSION", __version__),
    }
