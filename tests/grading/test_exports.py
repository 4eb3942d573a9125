"""Exports: what Canvas and Moodle would read from the files that are written for them.

``canvas_reads`` and ``moodle_reads`` follow the rules of their importers (which row
and column means what, when an import stops), so the tests ask what would be entered.
"""

import argparse
import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.grading import exports
from autograder.grading.classfile import Class, Student
from autograder.grading.exports import ExportError, canvas, moodle, read_grades

HEAD = (
    "assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,"
    "late_submission_penalty,score,max_score,status,reason\n"
)
GRADES = HEAD + (
    "04_attention,,,amelia.brandt,Brandt,Amelia,a@example.org,26.0,3.0,23.0,30.0,"
    "graded,to be graded by hand: explain-scaling. late by 1 hour: -3 points\n"
    "04_attention,,,daniel.okafor,Okafor,Daniel,d@example.org,0.0,0.0,0.0,30.0,"
    "graded,\n"
    "04_attention,,,lucia.moreno,Moreno,Lucía,l@example.org,,,,30.0,"
    '"ungraded","the notebook is not valid JSON (line 1, column 5)"\n'
    "05_multi_head_attention,,,amelia.brandt,Brandt,Amelia,a@example.org,17.125,0.0,"
    "17.125,20.0,graded,\n"
)
NAMELESS = HEAD + (
    "04_attention,,,s1,,,,20.0,0.0,20.0,30.0,graded,\n"
    "04_attention,,,s2,,,,10.0,0.0,10.0,30.0,graded,\n"
)


@pytest.fixture
def graded(tmp_path):
    def read(text: str = GRADES, chapters=(), of_class=None) -> exports.Grades:
        path = tmp_path / "grades.csv"
        path.write_text(text, encoding="utf-8")
        return read_grades(path, chapters, of_class)

    return read


@pytest.fixture
def roster(tmp_path):
    def read(system: str, text: str) -> exports.Roster:
        path = tmp_path / "roster.csv"
        path.write_text(text, encoding="utf-8")
        return exports.read_roster(path, system)

    return read


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


# --- Canvas ---------------------------------------------------------------------------


def canvas_reads(text: str) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """The points that would be set, and the scores by the cells that identify."""
    head, *rows = table(text)
    assert "Student" in head[0]
    assert "ID" in head[1]
    width = head.index("Section") + 1
    assert width in (4, 5)  # Canvas looks for Section just there
    points, scores = {}, {}
    for row in rows:
        assert len(row) == len(head)
        if "Points Possible" in row[0]:
            points = dict(zip(head[width:], row[width:], strict=True))
            continue
        who = next(cell for cell in (*row[1 : width - 1], row[0]) if cell)
        for title, cell in zip(head[width:], row[width:], strict=True):
            scores[who, title] = cell
    return points, scores


def test_canvas_without_a_roster(graded) -> None:
    made = canvas(graded())
    points, scores = canvas_reads(made.text)
    assert points == {"04_attention": "30", "05_multi_head_attention": "20"}
    assert scores["amelia.brandt", "04_attention"] == "23"
    assert scores["amelia.brandt", "05_multi_head_attention"] == "17.13"
    assert scores["daniel.okafor", "04_attention"] == "0"
    assert made.text.splitlines()[2].startswith('"Brandt, Amelia",,,amelia.brandt,,')


def test_what_was_not_graded_is_an_empty_cell_in_canvas(graded) -> None:
    _, scores = canvas_reads(canvas(graded()).text)
    assert scores["lucia.moreno", "04_attention"] == ""
    assert scores["daniel.okafor", "05_multi_head_attention"] == ""  # no row at all


CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,04_attention (991),Quiz (992),Current Score
,,,,,Manual Posting,,
    Points Possible,,,,,30,10,(read only)
"Moreno, Lucía",103,s103,lm@uni.example,Group 1,12,3,50
"Okafor, Daniel",102,s102,daniel.okafor,Group 2,,4,40
"Brandt, Amelia",101,s101,abrandt,Group 1,,5,70
"Nair, Priya",104,s104,pnair,Group 1,,6,70
"Student, Test",105,,9a8b7c,Group 1,,,
"""


def test_canvas_with_a_roster_keeps_its_ids(graded, roster) -> None:
    made = canvas(graded(), roster("canvas", CANVAS))
    points, scores = canvas_reads(made.text)
    assert points == {"04_attention (991)": "30", "05_multi_head_attention": "20"}
    assert scores["101", "04_attention (991)"] == "23"
    assert scores["102", "04_attention (991)"] == "0"
    assert scores["103", "04_attention (991)"] == ""
    assert {who for who, _ in scores} == {
        "101",
        "102",
        "103",
    }  # others stay as they are
    assert '"Moreno, Lucía",103,s103,lm@uni.example,Group 1,' in made.text


def test_canvas_notes_what_does_not_fit_together(graded, roster) -> None:
    text = GRADES + "04_attention,,,otto.ott,,,,1.0,0.0,1.0,30.0,graded,\n"
    made = canvas(graded(text), roster("canvas", CANVAS))
    assert made.notes == [
        "otto.ott: has grades, but no row in roster.csv",
        "Nair, Priya: is in roster.csv, but not graded: no row written",
        "05_multi_head_attention: no such assignment in Canvas; it will offer to make "
        "it",
        "lucia.moreno, 04_attention: has 12 in Canvas, and no grade here",
    ]


def test_points_possible_of_canvas_are_not_changed(graded, roster) -> None:
    made = canvas(graded(), roster("canvas", CANVAS.replace(",30,10,", ",100,10,")))
    points, scores = canvas_reads(made.text)
    assert points["04_attention (991)"] == "100"
    assert scores["101", "04_attention (991)"] == "23"
    assert (
        "04_attention: 100 points in Canvas, 30 here; nothing was rescaled"
        in made.notes
    )


def test_who_is_excused_in_canvas_stays_excused(graded, roster) -> None:
    text = CANVAS.replace("abrandt,Group 1,,", "abrandt,Group 1,EX,")
    made = canvas(graded(), roster("canvas", text))
    _, scores = canvas_reads(made.text)
    assert scores["101", "04_attention (991)"] == "EX"
    assert (
        "amelia.brandt, 04_attention: is excused in Canvas, the score 23 is left out"
        in made.notes
    )


def test_a_roster_with_semicolons_and_few_columns(graded, roster) -> None:
    text = (
        "\ufeffStudent;ID;SIS Login ID;Section;HW 04_attention (7)\n"
        "    Points Possible;;;;30,00\n"
        '"Brandt, Amelia";101;abrandt;1;1,5\n'
    )
    made = canvas(graded(chapters=["04_attention"]), roster("canvas", text))
    points, scores = canvas_reads(made.text)
    assert points == {"HW 04_attention (7)": "30.00"}
    assert scores == {("101", "HW 04_attention (7)"): "23"}


def test_ids_of_the_class_decide(graded, roster) -> None:
    """Two people of one name: the class's file says which is which."""
    text = (
        "Student,ID,SIS User ID,SIS Login ID,Section\n"
        '"Kim, Jo",1,,x1,\n"Kim, Jo",2,,x2,\n"Lee, Jo",3,,x3,\n'
    )
    students = {
        "s1": Student("s1", "Jo", "Kim", canvas="2"),
        "s2": Student("s2", "Jo", "Lee", login="nowhere"),
    }
    made = canvas(
        graded(NAMELESS, (), Class(students=students)), roster("canvas", text)
    )
    _, scores = canvas_reads(made.text)
    assert scores == {("2", "04_attention"): "20"}
    assert "s2: has grades, but no row in roster.csv" in made.notes


def test_one_name_for_two_people_finds_neither(graded, roster) -> None:
    text = 'Student,ID,SIS Login ID,Section\n"Kim, Jo",1,x1,\n"Kim, Jo",2,x2,\n'
    students = {"s1": Student("s1", "Jo", "Kim")}
    made = canvas(
        graded(NAMELESS, (), Class(students=students)), roster("canvas", text)
    )
    assert made.students == 0


def test_two_students_that_are_one_person_are_refused(graded, roster) -> None:
    text = 'Student,ID,SIS Login ID,Section\n"Kim, Jo",1,x1,\n'
    students = {name: Student(name, canvas="1") for name in ("s1", "s2")}
    of_class = Class(students=students)
    with pytest.raises(ExportError, match="s1 and s2: are one person"):
        canvas(graded(NAMELESS, (), of_class), roster("canvas", text))


# --- Moodle ---------------------------------------------------------------------------


def moodle_reads(
    text: str, identity: str, known: set[str]
) -> dict[tuple[str, str], float | None]:
    """The grades that would be entered into items that the import makes."""
    head, *rows = table(text)
    entered, who = {}, None
    for row in rows:
        value = row[head.index(identity)]
        if value:  # else the person of the row before, which must never be
            assert value in known, "Moodle would stop the whole import here"
            who = value
        else:
            pytest.fail("a row without an id goes to somebody else")
        for title in head:
            if title[:2].isdigit() and not title.endswith("(feedback)"):
                cell = row[head.index(title)]
                entered[who, title] = None if cell == "-" else float(cell or 0)
    return entered


def test_moodle_by_e_mail(graded) -> None:
    made = moodle(graded())
    known = {"a@example.org", "d@example.org", "l@example.org"}
    entered = moodle_reads(made.text, "Email address", known)
    assert entered == {
        ("a@example.org", "04_attention"): 23,
        ("a@example.org", "05_multi_head_attention"): 17.13,
        ("d@example.org", "04_attention"): 0,
        ("d@example.org", "05_multi_head_attention"): None,
        ("l@example.org", "04_attention"): None,
        ("l@example.org", "05_multi_head_attention"): None,
    }
    assert "04_attention: its maximum grade must be 30" in made.notes


def test_moodles_feedback_says_what_the_number_does_not(graded) -> None:
    head, *rows = table(moodle(graded(chapters=["04_attention"])).text)
    words = {row[0]: row[head.index("04_attention (feedback)")] for row in rows}
    assert words == {
        "Amelia": "23 of 30 points; 3 taken off for being late; an answer is still to "
        "be graded by hand",
        "Daniel": "0 of 30 points",
        "Lucía": "not graded: the notebook is not valid JSON (line 1, column 5)",
    }


MOODLE = """\
First name,Last name,ID number,Email address,Assignment: 04 (Real)
Amelia,Brandt,701,A@Example.org,-
Daniel,Okafor,702,d@example.org,-
Priya,Nair,704,p@example.org,-
"""


def test_moodle_with_a_roster_keeps_its_capitals(graded, roster) -> None:
    made = moodle(graded(), roster("moodle", MOODLE))
    entered = moodle_reads(
        made.text, "Email address", {"A@Example.org", "d@example.org"}
    )
    assert entered["A@Example.org", "04_attention"] == 23
    assert made.notes[:2] == [
        "lucia.moreno: has grades, but no row in roster.csv",
        "Priya Nair: is in roster.csv, but not graded: no row written",
    ]


def test_moodle_by_the_id_that_most_have(graded) -> None:
    students = {
        "s1": Student("s1", sis="701"),
        "s2": Student("s2", email="x@y.example"),
    }
    more = NAMELESS + "04_attention,,,s3,,,,5.0,0.0,5.0,30.0,graded,\n"
    students["s3"] = Student("s3", sis="703")
    made = moodle(graded(more, (), Class(students=students)))
    assert moodle_reads(made.text, "ID number", {"701", "703"})
    assert "s2: has no ID number, no row written" in made.notes


def test_moodle_without_any_id_takes_the_folders_names(graded) -> None:
    made = moodle(graded(NAMELESS))
    assert moodle_reads(made.text, "Username", {"s1", "s2"}) == {
        ("s1", "04_attention"): 20,
        ("s2", "04_attention"): 10,
    }
    assert "no addresses or ids are known: folders' names as Username" in made.notes


def test_one_address_for_two_students_is_refused(graded) -> None:
    students = {name: Student(name, email="x@y.example") for name in ("s1", "s2")}
    of_class = Class(students=students)
    with pytest.raises(ExportError, match="another student has the Email address"):
        moodle(graded(NAMELESS, (), of_class))


# --- the command ----------------------------------------------------------------------


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    exports.add_arguments(parser)
    return exports.run(parser.parse_args(list(map(str, arguments))))


@pytest.fixture
def grades_csv(tmp_path) -> Path:
    path = tmp_path / "grades.csv"
    path.write_text(GRADES, encoding="utf-8")
    return path


def test_the_command_writes_and_says_what_is_open(grades_csv, tmp_path, capsys) -> None:
    out = tmp_path / "canvas.csv"
    assert run("--grades", grades_csv, "--for", "canvas", "--out", out) == 0
    canvas_reads(out.read_text("utf-8"))
    printed = capsys.readouterr().out
    assert "3 students, 04_attention, 05_multi_head_attention" in printed
    assert "lucia.moreno, 04_attention: no score: the notebook is not valid" in printed
    assert "amelia.brandt, 04_attention: without points to be given by hand" in printed


def test_the_command_with_a_class_a_roster_and_a_chapter(grades_csv, tmp_path) -> None:
    of_class, names = tmp_path / "class.yml", tmp_path / "roster.csv"
    of_class.write_text("students: {amelia.brandt: {sis: s104}}", encoding="utf-8")
    names.write_text(CANVAS, encoding="utf-8")
    out = tmp_path / "canvas.csv"
    code = run(
        "--grades", grades_csv, "--for", "canvas", "--out", out, "--roster", names,
        "--class", of_class, "--chapter", "04_attention",
    )  # fmt: skip
    assert code == 0
    points, scores = canvas_reads(out.read_text("utf-8"))
    assert list(points) == ["04_attention (991)"]
    assert scores["104", "04_attention (991)"] == "23"


GRADES_CSV, ROSTER_CSV = "grades.csv", "roster.csv"
STOCK = "assignment,student_id,score,max_score\n"
BAD = {
    "no grades": (GRADES_CSV, "a,b\n1,2\n", "is no grades.csv of this grader"),
    "nbgrader's own": (GRADES_CSV, STOCK, "is no grades.csv"),
    "empty": (GRADES_CSV, "", "is no grades.csv"),
    "only a header": (GRADES_CSV, HEAD, "holds no grades of any"),
    "words": (GRADES_CSV, GRADES.replace("23.0", "many"), "the score is no number"),
    "infinite": (GRADES_CSV, GRADES.replace("23.0", "inf"), "the score is no number"),
    "no text": (GRADES_CSV, "\udcff", "is not UTF-8"),
    "no roster": (ROSTER_CSV, "Name,Score\nAda,1\n", "no gradebook that Canvas"),
    "twice": (ROSTER_CSV, CANVAS.replace("Quiz", "04_attention"), "several"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(
    fault, grades_csv, tmp_path, capsys
) -> None:
    name, text, message = BAD[fault]
    (tmp_path / "roster.csv").write_text(CANVAS, encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    out = tmp_path / "out.csv"
    code = run(
        "--grades", grades_csv, "--for", "canvas", "--out", out,
        "--roster", tmp_path / "roster.csv",
    )  # fmt: skip
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert printed.err.startswith(f"error: {tmp_path / name}")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert not out.exists()


def test_files_that_are_not_there_or_in_the_way(grades_csv, tmp_path, capsys) -> None:
    nowhere, out = tmp_path / "nowhere.csv", tmp_path / "out.csv"
    assert run("--grades", nowhere, "--for", "moodle", "--out", out) == 2
    assert "No such file" in capsys.readouterr().err
    assert run("--grades", grades_csv, "--for", "moodle", "--out", grades_csv) == 2
    assert "would be overwritten" in capsys.readouterr().err
    assert grades_csv.read_text("utf-8") == GRADES
    assert (
        run("--grades", grades_csv, "--for", "moodle", "--out", grades_csv / "x") == 2
    )
    assert "error: " in capsys.readouterr().err
    code = run(
        "--grades",
        grades_csv,
        "--for",
        "canvas",
        "--out",
        out,
        "--chapter",
        "07_decoder",
    )
    assert code == 2
    assert "holds no grades of 07_decoder" in capsys.readouterr().err


def test_the_command_is_registered() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "export", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "canvas" in done.stdout
