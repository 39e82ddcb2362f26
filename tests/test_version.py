"""The version stands in pyproject.toml; whatever else says it, says the same."""

import re
from importlib import metadata
from pathlib import Path

import pytest

import dpq_fast as dpq

ROOT = Path(__file__).parents[1]


def written(file: str, pattern: str) -> str:
    found = re.findall(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == 1
    return found[0]


VERSION = written("pyproject.toml", r'^version = "(\d+\.\d+\.\d+)"$')


def test_the_package_says_its_version_or_that_it_is_not_installed():
    try:
        installed = metadata.version("dpq_fast")
    except metadata.PackageNotFoundError:
        with pytest.raises(AttributeError, match="dpq_fast is not installed"):
            _ = dpq.__version__
    else:
        assert dpq.__version__ == installed == VERSION


def test_a_package_that_is_not_installed_has_no_version(monkeypatch):
    def unknown(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", unknown)
    assert not hasattr(dpq, "__version__")


def test_the_citation_has_the_version():
    assert written("CITATION.cff", r"^version: (\S+)$") == VERSION


def test_the_changelog_ends_at_the_version():
    """Headings are versions with their dates, the newest first; what is to come stands above."""
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert heads[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", head) for head in heads[1:])
    assert len(heads) == 1 or heads[1].startswith(f"[{VERSION}]")
