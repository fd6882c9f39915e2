"""The two distributions: what is in them, that they are reproducible, and that they install."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from tablectl.commands.lock import ci_files
from tablectl.model.install_source import DISTRIBUTIONS, CiSystem, wheel_name
from tablectl.version import __version__

ROOT = Path(__file__).parents[2]
PROJECTS = {"tablectl": ROOT, "tablectl-guard": ROOT / "packages" / "tablectl-guard"}
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13")
_USUAL = ("3.9", "3.12")


def build(project: Path, folder: Path) -> None:
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=project, env=environ, capture_output=True, check=True)


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    for project in PROJECTS.values():
        build(project, folder)
    return folder


def wheel(dist: Path, name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(dist / wheel_name(name, __version__))


def modules(archive: zipfile.ZipFile) -> set[str]:
    return {name for name in archive.namelist() if ".dist-info/" not in name}


def python(version: str) -> str | None:
    """An interpreter of that version, if this machine has one."""
    own = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for command in (shutil.which(f"python{version}"), *map(str, own)):
        if command and subprocess.run([command, "-c", ""], capture_output=True, check=False).returncode == 0:
            return command
    return None


def environment(folder: Path, version: str) -> Path:
    """The ``bin`` of a new virtual environment."""
    command = python(version)
    if command is None:
        pytest.skip(f"there is no Python {version}")
    subprocess.run([command, "-m", "venv", str(folder)], check=True)
    return folder / "bin"


def run(command: list[str], cwd: Path, bin_folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing of this test's environment that could lend it modules."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    kept |= {"PATH": f"{bin_folder}{os.pathsep}{kept['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"} | environ
    return subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)


def install(bin_folder: Path, cwd: Path, *args: str) -> None:
    done = run([str(bin_folder / "python"), "-m", "pip", "--quiet", "install", *args], cwd, bin_folder)
    if "NewConnectionError" in done.stderr or "Read timed out" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr


def test_two_builds_are_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    for project in PROJECTS.values():
        build(project, tmp_path)
    built = sorted(each.name for each in dist.iterdir())
    assert len(built) == 4
    for name in built:
        assert (tmp_path / name).read_bytes() == (dist / name).read_bytes(), name


def test_no_file_is_in_both_wheels_and_none_is_missing(dist: Path) -> None:
    own, guard = (modules(wheel(dist, name)) for name in ("tablectl", "tablectl-guard"))
    assert not own & guard
    sources = {
        str(each.relative_to(ROOT))
        for package in ("tablectl", "tablectl_guard")
        for each in (ROOT / package).rglob("*")
        if each.is_file() and each.suffix != ".pyc"
    }
    data = {name for name in own if name.startswith(("tablectl/_policies/", "tablectl/_locks/", "tablectl/_docs/"))}
    assert own | guard == sources | data
    assert {"tablectl/_locks/base.lock", "tablectl/_locks/spark.lock"} <= data
    assert {
        "tablectl/_docs/exit-codes.md",
        "tablectl/_docs/conflict-terms.md",
        "tablectl/_docs/generated/lint.md",
    } <= data
    assert {"tablectl/py.typed", "tablectl_guard/py.typed"} <= guard


def test_a_wheel_of_the_sources_is_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    for name in DISTRIBUTIONS:
        stem = f"{name.replace('-', '_')}-{__version__}"
        with tarfile.open(dist / f"{stem}.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        build(tmp_path / stem, tmp_path / "built")
        with wheel(tmp_path / "built", name) as again, wheel(dist, name) as first:
            assert modules(again) == modules(first)


def test_metadata_are_complete_and_name_one_version(dist: Path) -> None:
    for name in DISTRIBUTIONS:
        with wheel(dist, name) as archive:
            (file,) = (each for each in archive.namelist() if each.endswith("/METADATA"))
            told = email.message_from_bytes(archive.read(file))
            assert any(each.endswith("/licenses/LICENSE") for each in archive.namelist())
        assert (told["Name"], told["Version"]) == (name, __version__)
        assert told["License-Expression"] == "Apache-2.0"
        assert {"Summary", "Author", "Keywords", "Requires-Python", "Description-Content-Type"} <= set(told.keys())
        assert "Typing :: Typed" in (told.get_all("Classifier") or [])
        needs = told.get_all("Requires-Dist") or []
        if name == "tablectl":
            assert f"tablectl-guard=={__version__}" in needs
        else:
            assert told["Requires-Python"] == ">=3.9"
            always = {re.split(r"[^\w-]", each)[0] for each in needs if "extra ==" not in each}
            assert always == {"obstore", "typing-extensions"}


def test_both_have_the_license() -> None:
    assert (PROJECTS["tablectl-guard"] / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize(
    "version", [each if each in _USUAL else pytest.param(each, marks=pytest.mark.slow) for each in PYTHONS]
)
def test_a_job_needs_only_tablectl_guard(dist: Path, tmp_path: Path, version: str) -> None:
    bin_folder = environment(tmp_path / "venv", version)
    install(bin_folder, tmp_path, str(dist / wheel_name("tablectl-guard", __version__)))
    done = run([str(bin_folder / "python"), str(Path(__file__).with_name("writer.py"))], tmp_path, bin_folder)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    code = "import tablectl; tablectl.plan"
    done = run([str(bin_folder / "python"), "-c", code], tmp_path, bin_folder)
    assert done.stderr.endswith("ImportError: tablectl.plan is in tablectl, and only tablectl-guard is installed\n")


def install_scripts() -> list[tuple[str, str]]:
    """The commands that the workflows of ``init`` run to install tablectl, by job."""
    github = yaml.safe_load(ci_files(CiSystem.GITHUB)[".github/workflows/tablectl.yml"])["jobs"]
    steps = ((name, step) for name, job in github.items() for step in job["steps"])
    found = [(f"github {name}", step["run"]) for name, step in steps if "pip install" in step.get("run", "")]
    gitlab = yaml.safe_load(ci_files(CiSystem.GITLAB)[".gitlab-ci.yml"])
    for name in ("plan", "apply", "drift"):
        lines = [line for each in gitlab[name]["script"] for line in ([each] if isinstance(each, str) else each)]
        found.append((f"gitlab {name}", "\n".join(line for line in lines if "pip install" in line)))
    return found


def test_both_templates_install_the_same() -> None:
    scripts = {name: pip_lines(script) for name, script in install_scripts()}
    for name in ("plan", "apply", "drift"):
        assert scripts[f"github {name}"] == scripts[f"gitlab {name}"]
    assert scripts["github plan"] == scripts["github drift"] != scripts["github apply"]


def pip_lines(script: str) -> list[str]:
    """The installations of a script. For a plan, the requirements can be in a folder of the default branch."""
    found = [line.strip() for line in script.splitlines() if "pip install" in line]
    plain = [re.sub(r'"\$(?:base/)?requirements/([^"]+)"', r"requirements/\1", line) for line in found]
    # What is locked by hashes may come from a cache, which GitLab's jobs have none of.
    return [line.replace("--no-cache-dir ", "") if "--require-hashes" in line else line for line in plain]


@pytest.mark.slow
@pytest.mark.parametrize("job", ["plan", "apply"])
@pytest.mark.parametrize("source", ["wheels", "git"])
def test_what_init_writes_installs(dist: Path, tmp_path: Path, job: str, source: str) -> None:
    """Every printed command as it is, with hashes, from an empty environment. Minutes: it downloads everything."""
    bin_folder = environment(tmp_path / "venv", "3.12")
    shutil.copytree(dist, tmp_path / "wheels")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    given = "wheels" if source == "wheels" else f"git+https://git.example/tablectl@{commit.strip()}"
    init = [sys.executable, "-m", "tablectl", "init", ".", "--source", given]
    subprocess.run(init, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, capture_output=True)
    redirect = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{ROOT}.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://git.example/tablectl",
    }
    script = dict(install_scripts())[f"github {job}"]
    done = run(["bash", "-euc", script], tmp_path, bin_folder, **redirect)
    assert done.returncode == 0, done.stderr
    done = run(["tablectl", "validate"], tmp_path, bin_folder)
    assert done.returncode == 0, done.stderr
    check = run([str(bin_folder / "python"), "-m", "pip", "check"], tmp_path, bin_folder)
    assert (check.returncode, check.stdout) == (0, "No broken requirements found.\n")


def test_the_version_is_written_once_more_than_it_must() -> None:
    """In the requirement of tablectl: no build tool could read it there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"tablectl-guard=={__version__}" in project["dependencies"]
