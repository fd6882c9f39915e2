"""The files that ``tablectl init`` writes, as texts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.model.install import CiSystem, InstallSource
from tablectl.policies.schemas import policy_schema
from tablectl.policies.yaml_text import write_text
from tablectl.support.json_text import write_json

Files = Mapping[str, str]
_NONE: Mapping[str, str] = MappingProxyType({})

POLICIES = "policies/tables.yaml"
WORKFLOW = ".github/workflows/tablectl.yml"
SCHEMA = "tablectl.schema.json"
KEPT = (".gitignore", ".pre-commit-config.yaml")
"""Files that most repositories have: those that exist are kept, and the user is shown what to add."""

EDITOR_LINE = f"# yaml-language-server: $schema=../{SCHEMA}\n"
"""Tells editors which schema a policy file has."""

_CONFIG = """# How tablectl works here. Single values may be variables too: TABLECTL_ENGINE_CATALOG is engine.catalog.
policies: policies
VARIABLES
INSTALL
# engine:
#   catalog: spark_catalog       # of names with two parts
#   dialect: oss                 # or databricks: the dialect of the statements
#   remote: sc://spark:15002     # a Spark Connect server; else a local session, with `conf`
#   conf: {spark.driver.memory: 4g}
# window:
#   drain: 300                   # seconds to wait for writers each time the gate tightens
#   allow: [{cron: "0 22 * * 1-5", duration: 6h, timezone: Europe/Berlin}]
# env:                             # tablectl plan --env prod, or TABLECTL_ENV: what differs between them
#   dev: {variables: {LAKE: /data/lake}}
#   prod: {variables: {LAKE: s3://lake}}
# reports:
#   mask: ["*password*", owner.*]      # keys whose values no report shows; by default those like secrets
"""

_EXAMPLE = """# The desired state of tables. Settings that no line names are not managed and never changed.
# From live tables: tablectl import 'lake.sales.*' --out policies/sales.yaml
version: 1

tables: {}
#  lake.sales.orders:
#    isolation: Serializable
#    deletion_vectors: enabled
#    clustering: [customer_id, order_date]
#    properties:
#      owner.team: payments
"""

_PLANS = """# Saved plans are made for one state of the tables: keep them as artifacts, not in Git.
*
!.gitignore
!README.md
"""

_READ_PLANS = """# Saved plans

`tablectl plan --out plans/today.json` saves a plan here, and `tablectl apply plans/today.json` runs exactly that plan.
A plan is made for one state of the tables, so it is not kept in Git. A CI job keeps it as an artifact.
"""

_READ_POLICIES = """# Policies

Each file says what tables should be: one entry for a table or a pattern. What no line names is not managed.
Change a file in a pull request, read its plan (`tablectl plan`), and merge it: then CI applies that plan.
"""

_WORKFLOW = """name: tablectl

# A pull request gets a plan, as a comment and an artifact. Merging it applies exactly that plan. A daily run fails if
# tables have drifted. A manual run makes a plan; with the number of a run, it applies the plan of that run.
on:
  pull_request:
    paths: ["policies/**", tablectl.yaml, "requirements/**", .github/workflows/tablectl.yml]
  merge_group:
  push:
    branches: [main]
    paths: ["policies/**", tablectl.yaml]
  schedule:
    - cron: "17 5 * * *"
  workflow_dispatch:
    inputs:
      plan-run:
        description: The number of the run (from its URL) whose plan to apply; empty to plan
        required: false

permissions: {}

# env: # values of variables, and no credentials: every job would have them. See the `env` of each job.
#   TABLECTL_VAR_LAKE: s3://lake

jobs:
  plan:
    if: >-
      github.event_name == 'pull_request' || github.event_name == 'merge_group' ||
      (github.event_name == 'workflow_dispatch' && !inputs.plan-run)
    runs-on: ubuntu-latest
    permissions:
      actions: read # the annotations of private repositories
      contents: read
      pull-requests: write # the comment
      security-events: write # the annotations
    concurrency:
      group: tablectl-plan-${{ github.ref }}
      cancel-in-progress: true # the plan of a newer push is the one to review
    # env: # credentials that can read the tables' logs and nothing else: whoever pushes a branch can use them
    #   AWS_ACCESS_KEY_ID: ${{ secrets.READ_AWS_ACCESS_KEY_ID }}
    #   AWS_SECRET_ACCESS_KEY: ${{ secrets.READ_AWS_SECRET_ACCESS_KEY }}
    steps:
      - uses: actions/checkout@11d5960a326750d5838078e36cf38b85af677262 # v4.4.0
        with:
          persist-credentials: false
      - uses: actions/checkout@11d5960a326750d5838078e36cf38b85af677262 # v4.4.0
        with: # the branch from which plans are applied says what is installed, not the one that is planned
          ref: main
          path: tablectl-base
          sparse-checkout: requirements
          persist-credentials: false
      - uses: actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0
        with:
          python-version: "3.12"
          cache: pip
          cache-dependency-path: requirements/tablectl-plan.lock
      - name: install tablectl
        run: |
          requirements=tablectl-base/requirements
          [ -d "$requirements" ] || requirements=requirements # main has none before this workflow is merged
          pip install --require-hashes -r "$requirements/tablectl-plan.lock"
          pip install --no-deps --no-build-isolation -r "$requirements/tablectl.txt"
      - name: read the configuration of the base branch
        id: base
        env:
          INPUT_TOKEN: ${{ github.token }}
        run: python -P -m tablectl.ci base
      - name: plan
        id: plan
        env:
          TABLECTL_BASE_CONFIG: ${{ steps.base.outputs.config }}
        run: python -P -m tablectl.ci plan
      - uses: actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2
        id: keep
        if: always() && steps.plan.outputs.folder
        with:
          name: ${{ steps.plan.outputs.artifact }}
          path: ${{ steps.plan.outputs.folder }}
          overwrite: true
      - name: comment
        if: always() && steps.plan.outputs.report
        env:
          INPUT_REPORT: ${{ steps.plan.outputs.report }}
          INPUT_DIGEST: ${{ steps.plan.outputs.digest }}
          INPUT_ARTIFACT: ${{ steps.keep.outputs.artifact-url }}
          INPUT_TOKEN: ${{ github.token }}
        run: python -P -m tablectl.ci comment
      - uses: github/codeql-action/upload-sarif@8aad20d150bbac5944a9f9d289da16a4b0d87c1e # v4.36.2
        if: always() && steps.plan.outputs.sarif
        continue-on-error: true # code scanning may be switched off
        with:
          sarif_file: ${{ steps.plan.outputs.sarif }}
          category: tablectl

  apply:
    if: >-
      github.event_name == 'push' || (github.event_name == 'workflow_dispatch' && inputs.plan-run &&
      github.ref_name == github.event.repository.default_branch)
    runs-on: ubuntu-latest
    permissions:
      actions: read # the plan
      contents: read
      pull-requests: write # the comment
    concurrency:
      group: tablectl-apply
      cancel-in-progress: false # an apply that runs is never cut short
    environment: production # allow the default branch alone (Settings, Environments); only this job has its secrets
    # env: # credentials that can write
    #   AWS_ACCESS_KEY_ID: ${{ secrets.AWS_ACCESS_KEY_ID }}
    #   AWS_SECRET_ACCESS_KEY: ${{ secrets.AWS_SECRET_ACCESS_KEY }}
    steps:
      - uses: actions/checkout@11d5960a326750d5838078e36cf38b85af677262 # v4.4.0
        with:
          persist-credentials: false
      - uses: actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0
        with:
          python-version: "3.12"
          cache: pip
          cache-dependency-path: requirements/tablectl-apply.lock
      - uses: actions/setup-java@cf277c60eb25467037889841efdb72551f06f6c3 # v4.9.1
        with:
          distribution: temurin
          java-version: "17"
      - name: install tablectl
        run: |
          pip install --require-hashes -r requirements/tablectl-apply.lock
          pip install --no-deps --no-build-isolation -r requirements/tablectl.txt
      - name: download the plan that was reviewed
        id: find
        env:
          INPUT_PLAN_RUN: ${{ inputs.plan-run }}
          INPUT_TOKEN: ${{ github.token }}
        run: python -P -m tablectl.ci find
      - name: apply
        id: apply
        env:
          INPUT_DIGEST: ${{ steps.find.outputs.digest }}
        run: python -P -m tablectl.ci apply
      - name: comment
        if: always() && steps.apply.outputs.report
        env:
          INPUT_MODE: apply
          INPUT_REPORT: ${{ steps.apply.outputs.report }}
          INPUT_PULL_REQUEST: ${{ steps.find.outputs.pull-request }}
          INPUT_TOKEN: ${{ github.token }}
        run: python -P -m tablectl.ci comment
      - uses: actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2
        if: always() && steps.apply.outputs.folder
        with:
          name: ${{ steps.apply.outputs.artifact }}
          path: ${{ steps.apply.outputs.folder }}
          overwrite: true

  drift:
    if: github.event_name == 'schedule'
    runs-on: ubuntu-latest
    permissions:
      contents: read
    steps:
      - uses: actions/checkout@11d5960a326750d5838078e36cf38b85af677262 # v4.4.0
        with:
          persist-credentials: false
      - uses: actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0
        with:
          python-version: "3.12"
          cache: pip
          cache-dependency-path: requirements/tablectl-plan.lock
      - name: install tablectl
        run: |
          pip install --require-hashes -r requirements/tablectl-plan.lock
          pip install --no-deps --no-build-isolation -r requirements/tablectl.txt
      - name: fail where a table is not as declared
        id: drift
        run: python -P -m tablectl.ci drift
      - uses: actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2
        if: always() && steps.drift.outputs.folder
        with:
          name: ${{ steps.drift.outputs.artifact }}
          path: ${{ steps.drift.outputs.folder }}
          overwrite: true
"""

_GITLAB = """# A merge request gets a plan, as a note. After the merge a person starts the apply of exactly that plan.
# A pipeline by hand on the default branch plans again, and its apply runs that plan. A schedule finds drift.
stages: [plan, apply, drift]

default:
  image: python:3.12-bookworm
  cache: {key: {files: [requirements/tablectl-apply.lock]}, paths: [.cache/pip]}

variables:
  PIP_CACHE_DIR: $CI_PROJECT_DIR/.cache/pip
  # Values of variables, and no credentials: every job would have them. Give those that can write to the apply job
  # alone: a protected environment, or id_tokens (docs/ci.md).
  # TABLECTL_VAR_LAKE: s3://lake

.plan: &install-plan
  - |
    base=.
    if [ -n "$CI_MERGE_REQUEST_IID" ]; then # the default branch says what is installed, and where tokens are sent
      base=$(mktemp -d)
      git fetch --quiet --depth=1 origin "$CI_DEFAULT_BRANCH"
      git archive --output="$base/base.tar" FETCH_HEAD
      tar -x -f "$base/base.tar" -C "$base"
      touch "$base/tablectl.yaml" # without it, the defaults count
      [ -e "$base/requirements" ] || cp -r requirements "$base/" # before the first merge, the branch's own
      export TABLECTL_BASE_CONFIG="$base/tablectl.yaml"
    fi
  - pip install --require-hashes -r "$base/requirements/tablectl-plan.lock"
  - pip install --no-deps --no-build-isolation -r "$base/requirements/tablectl.txt"

plan:
  stage: plan
  script:
    - *install-plan
    - tablectl plan --out plan.json --report plan.md --report plan.html --report plan.xml
  after_script: # the note of the merge request; NOTE_TOKEN is a project access token with the scope `api`, masked
    - python -P -m tablectl.ci note
  artifacts: {when: always, paths: [plan.json, plan.md, plan.html], reports: {junit: plan.xml}}
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
      changes: [policies/**/*, tablectl.yaml, requirements/*]
    - if: $CI_PIPELINE_SOURCE == "web" && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH

apply:
  stage: apply
  needs: [{job: plan, optional: true}]
  environment: production
  resource_group: tablectl # one apply at a time
  interruptible: false
  script:
    - apt-get update -qq && apt-get install -qq --yes openjdk-17-jre-headless
    - pip install --require-hashes -r requirements/tablectl-apply.lock
    - pip install --no-deps --no-build-isolation -r requirements/tablectl.txt
    - '[ -f plan.json ] || python -P -m tablectl.ci reviewed' # the plan that the note of the merge request shows
    - tablectl apply plan.json --report run.md --report run.html
  artifacts: {when: always, paths: [run.md, run.html]}
  rules:
    - if: $CI_PIPELINE_SOURCE == "push" && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
      changes: [policies/**/*, tablectl.yaml]
      when: manual
    - if: $CI_PIPELINE_SOURCE == "web" && $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
      when: manual

drift:
  stage: drift
  script:
    - *install-plan
    - tablectl drift --report drift.md --report drift.html --report drift.xml
  artifacts: {when: always, paths: [drift.md, drift.html], reports: {junit: drift.xml}}
  rules:
    - if: $CI_PIPELINE_SOURCE == "schedule"
"""

_PRE_COMMIT = """repos:
  - repo: local
    hooks:
      - id: tablectl-validate
        name: tablectl validate
        entry: tablectl validate
        language: system
        files: ^(policies/.*\\.ya?ml|tablectl\\.yaml)$
        pass_filenames: false
"""


_GITIGNORE = """# What a local Spark leaves in the folder where it starts.
spark-warehouse/
metastore_db/
derby.log
"""

_UNKNOWN = """
# install:                       # where CI installs tablectl from (docs/install.md); then run `tablectl lock`
#   source: git+https://HOST/PATH@COMMIT
"""


CI_FILES: Mapping[CiSystem, Files] = MappingProxyType(
    {CiSystem.GITHUB: {WORKFLOW: _WORKFLOW}, CiSystem.GITLAB: {".gitlab-ci.yml": _GITLAB}, CiSystem.NONE: {}}
)


def scaffold(
    policies: str = "", source: InstallSource | None = None, hashes: Mapping[str, str] = _NONE, lake: str = ""
) -> Files:
    """The files by path in the repository but those of CI. ``policies`` is the text of the first policies; without it,
    an example. ``lake`` is the value of the variable LAKE in them, if they have it.
    """
    variables = f"variables: {{LAKE: {write_text(lake)}}} # where the tables lie; `env` can say it of each environment"
    return {
        "tablectl.yaml": _CONFIG.replace("VARIABLES\n", f"{variables}\n" if lake else "").replace(
            "INSTALL\n", _install_section(source, hashes)
        ),
        POLICIES: EDITOR_LINE + (policies or _EXAMPLE),
        "policies/README.md": _READ_POLICIES,
        SCHEMA: f"{write_json(policy_schema(), indent=2)}\n",
        "plans/.gitignore": _PLANS,
        "plans/README.md": _READ_PLANS,
        ".gitignore": _GITIGNORE,
        ".pre-commit-config.yaml": _PRE_COMMIT,
    }


def _install_section(source: InstallSource | None, hashes: Mapping[str, str]) -> str:
    if source is None:
        return _UNKNOWN
    lines = [f"    {name}: {value}\n" for name, value in hashes.items()] if source.is_url else []
    comment = "# where CI installs tablectl from; `tablectl lock` writes requirements/ from it"
    section = f"install: {comment}\n  source: {source.text}\n"
    return "\n" + section + ("  hashes:\n" + "".join(lines) if lines else "") + "\n"
