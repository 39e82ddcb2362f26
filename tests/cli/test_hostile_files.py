"""Every command that reads records, as a new user would try it, on files as they come."""

import io
import json
from pathlib import Path

import pytest
from click.testing import Result
from command_line import answered, run, said

# Each command, but for the file and epsilon.
BOUNDS = ["--bounds", 0, 100, "--resolution", 1]
TOWNS = ["--by", "town", "--groups", "Aston,Barnet"]
COMMANDS = {
    "quantile": ["quantile", "--column", "age", "--q", "0.5,0.9", *BOUNDS],
    "quantile without bounds": ["quantile", "--column", "age", "--q", "0.5"],
    "quantile by town": ["quantile", "--column", "age", "--q", "0.5", *BOUNDS, *TOWNS],
    "quantile with intervals": [
        *("quantile", "--column", "age", "--q", "0.5", *BOUNDS, "--confidence", 0.9)
    ],
    "cdf": ["cdf", "--column", "age", *BOUNDS],
    "sum": ["sum", "--column", "age", "--bounds", 0, 100],
    "sum with a private clip": ["sum", "--column", "age"],
    "sum by town": ["sum", "--column", "age", "--bounds", 0, 100, *TOWNS],
    "mean": ["mean", "--column", "age", "--bounds", 0, 100, "--confidence", 0.9],
    "mean by town": ["mean", "--column", "age", "--bounds", 0, 100, *TOWNS],
    "count": ["count", "--column", "age"],
    "count by town": ["count", "--column", "age", *TOWNS],
    "describe": ["describe", "--column", "age:0:100:1"],
    "describe by town": ["describe", "--column", "age:0:100:1", *TOWNS],
}
SELECTED = {
    "quantile": ["--q", "0.5", *BOUNDS],
    "sum": ["--bounds", 0, 100],
    "mean": ["--bounds", 0, 100],
    "count": [],
    "describe": [],
}
# What only records hold.
SECRETS = ("Zebediah", "4711", "Zürich", "Z\\xfcrich", "rich")
HEADER = b"name,age,town\n"
ROWS = b"".join(b"Zebediah,%d,%s\n" % (20 + j, (b"Aston", b"Barnet")[j % 2]) for j in range(40))
BAD_ROWS = {
    "a text for a number": b"Zebediah,4711x,Aston",
    "too few fields": b"Zebediah",
    "too many fields": b"Zebediah,4711,Aston,Zebediah",
    "an empty line": b"",
    "an open quote": b'"Zebediah,4711,Aston',
    "a quote inside": b'Zebe"diah,4711,Aston',
    "no key": b"Zebediah,4711,",
    "another key": b"Zebediah,4711,Z\xc3\xbcrich",
    "bytes of no encoding": b"Zebe\xffdiah,47\xff11,Z\xfcrich",
    "a nul": b"Zebe\0diah,4711\0,Aston",
    "a carriage return": b"Zebediah,\r4711,Aston",
    "an infinite number": b"Zebediah,-inf,Aston",
    "a huge number": b"Zebediah,1e999,Aston",
    "a long line": b"Zebediah" * 1_000 + b",4711,Aston",
}
# Files that no command can answer from, and what it says.
REFUSED = {
    "empty": (b"", "must begin with a line of column names in UTF-8"),
    "of blank lines": (b"\n\r\n\n", "must begin with a line of column names in UTF-8"),
    "without the column": (b"name,years,town\n" + ROWS, "--column must name exactly one of the"),
    "with the column twice": (b"age,age,town\n" + ROWS, "--column must name exactly one of the"),
    "in UTF-16": (
        (HEADER + ROWS).decode().encode("utf-16"),
        "must begin with a line of column names in UTF-8",
    ),
    "in UTF-16 without a mark": (
        (HEADER + ROWS).decode().encode("utf-16-le"),
        "must begin with a line of column names in UTF-8",
    ),
    "with names in Latin-1": (
        "Größe,age,town\n".encode("latin-1") + ROWS,
        "must begin with a line of column names in UTF-8",
    ),
    "with lines of carriage returns": (
        (HEADER + ROWS).replace(b"\n", b"\r"),
        "must begin with a line of column names in UTF-8",
    ),
    "without names": (ROWS, "--column must name exactly one of the columns of"),
}


def called(name: str, path: Path | str, *more: object, **given: bytes) -> Result:
    command, *options = COMMANDS[name]
    return run(command, path, *options, "--epsilon", 1, "--seed", 1, *more, **given)


def assert_nothing_private(*texts: str) -> None:
    for text in texts:
        assert not [secret for secret in SECRETS if secret in text], text
        assert "Traceback" not in text


def shape(value: object) -> object:
    """A released object without the numbers that are released."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return "number" if isinstance(value, (int, float)) else value


@pytest.fixture
def people(tmp_path: Path) -> Path:
    file = tmp_path / "people.csv"
    file.write_bytes(HEADER + ROWS)
    return file


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_answer_from_a_file_and_from_a_pipe(people, name):
    from_file = called(name, people)
    assert from_file.exit_code == 0, from_file.output
    # of a pipe nobody knows the number of records beforehand
    known = (
        [] if name.startswith(("sum", "mean", "count")) or "by" in name else ["--expected-n", 41]
    )
    from_pipe = called(name, "-", *known, input=people.read_bytes())
    assert from_pipe.exit_code == 0, from_pipe.output
    assert from_pipe.stdout == from_file.stdout
    assert_nothing_private(from_file.output, from_pipe.output)


@pytest.mark.parametrize("name", [name for name in COMMANDS if "with" not in name])
@pytest.mark.parametrize("kind", REFUSED)
def test_commands_say_what_is_wrong_with_a_file(tmp_path, name, kind):
    content, rule = REFUSED[kind]
    command, *options = COMMANDS[name]
    file = tmp_path / "people.csv"
    file.write_bytes(content)
    for path, given in ((file, {}), ("-", {"input": content})):
        message = said(command, path, *options, "--epsilon", 1, **given)
        assert rule in message
        assert_nothing_private(message)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_seen_does_not_depend_on_one_record(people, name):
    """A row that is bad in any way against a good one: the same but for released numbers."""
    seen = []
    for row in (b"Zebediah,33,Barnet", *BAD_ROWS.values()):
        people.write_bytes(HEADER + ROWS + row + b"\n" + ROWS)
        result = called(name, people, "--json")
        assert_nothing_private(result.output)
        seen.append((result.exit_code, result.stderr, shape(json.loads(result.stdout))))
    assert seen[0][0] == 0
    assert all(one == seen[0] for one in seen)


@pytest.mark.parametrize("command", SELECTED)
@pytest.mark.parametrize("row", BAD_ROWS.values(), ids=BAD_ROWS)
def test_selected_groups_answer_whatever_one_record_holds(people, command, row):
    people.write_bytes(HEADER + 5 * ROWS + row + b"\n" + 5 * ROWS)
    column = "age:0:100:1" if command == "describe" else "age"
    arguments = ["--column", column, *SELECTED[command], "--by", "town", "--delta", 1e-6]
    out = answered(command, people, *arguments, "--epsilon", 4, "--seed", 2)
    rows = out["rows"] if command == "describe" else out["groups"]
    towns = [row["town"] if command == "describe" else row for row in rows]
    assert sorted(towns) == ["Aston", "Barnet"]
    assert out["delta"] == 1e-6


@pytest.mark.parametrize("name", COMMANDS)
def test_a_column_of_text_is_one_of_missing_numbers(people, name):
    """In CSV no type is declared, and the values must not decide."""
    command, *options = COMMANDS[name]
    text = [str(option).replace("age", "name") for option in options]
    result = run(command, people, *text, "--epsilon", 1)
    assert result.exit_code == 0, result.output
    assert_nothing_private(result.output)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_of_names_alone_answers(tmp_path, name):
    file = tmp_path / "people.csv"
    for content in (HEADER, HEADER.strip()):
        file.write_bytes(content)
        assert called(name, file).exit_code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_breaks_off_says_no_more(people, name, monkeypatch):
    """An error while records are read may depend on them, and so may its words."""

    def broken(*_: object) -> object:
        raise ValueError("Zebediah is 4711")

    monkeypatch.setattr("dpq_fast.engines.lines.Lines.numbers", broken)
    command, *options = COMMANDS[name]
    message = said(command, people, *options, "--epsilon", 1, code=3)
    assert "people.csv could not be read to its end" in message
    assert_nothing_private(message)


def test_a_pipe_is_read_once(people):
    stream = io.BytesIO(people.read_bytes())
    out = answered("describe", "-", "--column", "age:0:100:1", "--epsilon", 1e6, input=stream)
    assert out["rows"][0]["count"] == 40


class Pipe(io.BytesIO):
    """Stays open after the call, as that of the shell does."""

    def close(self):
        pass


def test_a_refused_call_leaves_the_records_of_a_pipe(people):
    stream = Pipe(people.read_bytes() + b"more\n" * 2**16)
    said("quantile", "-", *COMMANDS["quantile"][1:], "--epsilon", 0, input=stream)
    assert stream.read() != b""


def test_keys_are_texts_as_they_are_written(tmp_path):
    """Without the blanks around them; an empty one is missing, as that of an odd line is."""
    file = tmp_path / "keys.csv"
    keys = [b"1", b"01", b" 1 ", b'"1"', b'" 1"', b"NA", b"", b'""', b"a b", b'"a ""b"""', b"\xe9"]
    file.write_bytes(b"town,age\n" + b"".join(key + b",1\n" for key in keys) + b"1,2,3\n")
    (tmp_path / "groups.txt").write_text('1\n01\nNA\na b\n"a ""b"""\nb\n')
    out = answered(
        *("count", file, "--column", "age", "--by", "town", "--epsilon", 1e6),
        *("--groups-file", tmp_path / "groups.txt"),
    )
    assert out["groups"] == ["1", "01", "NA", "a b", 'a "b"', "b"]
    assert out["values"] == [4, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_number_of_lines_is_not_asked_for_where_it_is_private(people, name, monkeypatch):
    monkeypatch.setattr("dpq_fast.cli.files.CsvFiles.rows", None)
    result = called(name, people, "--neighbors", "add-remove")
    assert result.exit_code == 0, result.output
    assert "neighbors add-remove" in " ".join(result.stdout.split())
