"""One place names the repository, _config.yml: all else repeats it, and a fork is followed by one command."""
import re
import shutil
from pathlib import Path

import fork
import notebooks
import pytest
import yaml
from catalogue import Catalogue

from fourierqk.site import published

ROOT = Path(__file__).resolve().parents[1]
OURS = Catalogue(ROOT).repository["url"]
THEIRS = "https://github.com/some-one/else.where"
APART = ROOT / "book" / "records", ROOT / "book" / "_scripts"  # numbers of ours, the library of others
FILES = {path: text for path, text in fork.tracked(ROOT).items() if not {*APART} & {*path.parents}}
HOSTS = r"(?:github\.com|raw\.githubusercontent\.com|research\.google\.com/github)/([\w.-]+/[\w.-]*[\w-])"
OTHERS = {"karpathy/char-rnn", "karpathy/nanoGPT", "AthanasiosZeris/energy-gated-attention"}  # quoted
NOBODY = {"me", "not-me", "you", "some-one", "owner"}  # owners of repositories that are made up


def test_no_file_names_the_repository_differently():
    named = {repository: path for path, text in FILES.items() for repository in re.findall(HOSTS, text)
             if repository.split("/")[0].lower() not in NOBODY}  # fmt: skip
    ours = OURS.removeprefix("https://github.com/")
    assert ours in named
    strangers = {repository: str(path) for repository, path in named.items() if repository not in {ours, *OTHERS}}
    assert not strangers, f"neither {OURS}, as _config.yml says, nor a repository that the book quotes: OTHERS"


def test_no_file_names_the_pages_differently():
    found = {(owner, address) for text in FILES.values()
             for address, owner in re.findall(r"(https://([\w-]+)\.github\.io/[\w-]+/?)", text)}  # fmt: skip
    assert {address for owner, address in found if owner not in {*NOBODY, "karpathy"}} == {published(OURS)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pip install git+https://github.com/me/it@main", "pip install git+https://github.com/some-one/else.where@main"),
        ("https://github.com/me/it/blob/main/book/a.ipynb.", "https://github.com/some-one/else.where/blob/main/book/a.ipynb."),
        ("See https://github.com/me/it.", "See https://github.com/some-one/else.where."),
        ("https://github.com/me/it.git", "https://github.com/some-one/else.where.git"),
        ("https://raw.githubusercontent.com/me/it/main/x",
         "https://raw.githubusercontent.com/some-one/else.where/main/x"),
        ("https://colab.research.google.com/github/me/it/blob",
         "https://colab.research.google.com/github/some-one/else.where/blob"),
        ("git clone https://github.com/me/it && cd it",
         "git clone https://github.com/some-one/else.where && cd else.where"),
        ("https://me.github.io/it/dft.html", "https://some-one.github.io/else.where/dft.html"),
        *[(same, same) for same in ("https://github.com/me/it-too", "https://github.com/me/it.js",
                                    "https://github.com/you/it", "https://github.com/not-me/it",
                                    "https://you.github.io/it/", "import it", "me/it")],
    ],
)  # fmt: skip
def test_an_address_follows_and_another_stays(before, after):
    assert fork.follow(before, "https://github.com/me/it", THEIRS) == after
    assert fork.follow(after, THEIRS, "https://github.com/me/it") == before


@pytest.mark.parametrize(
    ("repository", "where"),
    [("https://github.com/Me/it", "https://me.github.io/it/"), ("https://github.com/me/Me.github.io", "https://me.github.io/")],
)
def test_where_the_pages_are(repository, where):
    assert published(repository) == where


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The files that name the repository, in another folder. git knows them there too."""
    for path, text in FILES.items():
        if OURS.removeprefix("https://") in text or published(OURS) in text or path.is_relative_to(ROOT / "book"):
            (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / path.relative_to(ROOT))
    there = [path for path in tmp_path.rglob("*") if path.is_file()]
    monkeypatch.setattr(fork, "tracked", lambda root: {path: path.read_text("utf8") for path in there})
    shutil.copytree(ROOT / "fourierqk", tmp_path / "fourierqk", dirs_exist_ok=True)  # chapters quote from it
    return tmp_path


def test_a_fork_is_followed_by_all_and_back(copy):
    """Every file has the new address and no other is left; notebooks are what their chapters say; and the way back."""
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert fork.main([THEIRS + "/"], copy) == 0
    assert yaml.safe_load((copy / "_config.yml").read_text())["repository"]["url"] == THEIRS
    changed = {path: path.read_text("utf8") for path, was in before.items() if path.read_bytes() != was}
    assert len(changed) > 25 and not any(OURS in text or published(OURS) in text for text in changed.values())
    fork_of = Catalogue(copy)
    for doc in fork_of.chapters[:3]:
        assert notebooks.changes(fork_of, doc) == ""
    fork.main([OURS], copy)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("url", ["me/it", "https://github.com/me", "git@github.com:me/it.git", "https://example.org/me/it"])
def test_what_is_no_repository_is_refused(url, capsys):
    with pytest.raises(SystemExit):
        fork.main([url])
    assert "https://github.com/OWNER/NAME" in capsys.readouterr().err
