"""What contributors read and fill in: the places that CONTRIBUTING.md names are there, and issue forms are forms."""
import re
from pathlib import Path

import pytest
import yaml

import fourierqk

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf8")
GUIDE = re.sub(r"\s+", " ", CONTRIBUTING.split("```")[2])
PLACES = sorted({name for name in re.findall(r"`([\w./-]+)`", GUIDE) if re.search(r"/|\.\w+$", name)})
WITHIN = re.findall(r"`(\w+)` in `([\w./-]+)`", GUIDE)
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.parametrize("place", PLACES)
def test_a_place_is_there(place: str):
    """NAME stands for a name of the contributor's: then something of that kind is there."""
    assert list(ROOT.glob(place.replace("NAME", "*"))), f"CONTRIBUTING.md names {place}"


@pytest.mark.parametrize(("name", "place"), WITHIN)
def test_a_name_is_in_the_place_that_is_said(name: str, place: str):
    assert re.search(rf"^(def |class )?{name}\b", (ROOT / place).read_text("utf8"), re.MULTILINE)


def test_the_guide_names_what_can_be_added():
    kinds = {"filter", "system", "chapter", "exercise", "prediction", "widget", "claim of the paper"}
    assert {*re.findall(r"^## Adding an? (.+)$", CONTRIBUTING, re.MULTILINE)} == kinds
    assert len(PLACES) > 15 and len(WITHIN) > 7


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_one(path: Path):
    """By GitHub's rules for issue forms: what it must say, the kinds of fields, and what each of these needs."""
    form = yaml.safe_load(path.read_text("utf8"))
    assert {*form} <= {"name", "description", "body", "title", "labels", "assignees", "projects", "type"}
    assert form["name"] and form["description"]
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len({*ids}) and all(re.fullmatch(r"[\w-]+", i) for i in ids)
    labels = [field["attributes"]["label"] for field in form["body"]]
    assert len(labels) == len({*labels})
    known = {"description", "label", "placeholder", "value"}
    also = {"textarea": {"render"}, "input": set(), "dropdown": {"options", "multiple", "default"}}
    for field in form["body"]:
        assert {*field} <= {"type", "id", "attributes", "validations"}
        assert {*field["attributes"]} <= known | also[field["type"]]
        assert field["type"] != "dropdown" or len({*field["attributes"]["options"]}) > 1


def test_there_is_a_form_for_each_kind_of_fault():
    assert {path.stem for path in FORMS} == {"bug", "verdict", "book"}


def test_the_changelog_is_headed_by_what_is_not_released():
    log = (ROOT / "CHANGELOG.md").read_text("utf8")
    versions = re.findall(r"^## \[?([\w.]+)", log, re.MULTILINE)
    groups = re.findall(r"^### (\w+)", log, re.MULTILINE)
    assert versions[0] == "Unreleased" and f"This will be {fourierqk.__version__}" in log
    assert {*groups} <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
