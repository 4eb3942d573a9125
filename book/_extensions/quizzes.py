"""The directive `quiz`: the questions of book/quizzes/NAME.yml on a page.

    ```{quiz} 04_attention
    ```

A question has a text, two or more options of which one is `right: true`, and for every
option, right or wrong, a `why`. `proof` is a Python expression that a test evaluates.
Texts are Markdown. Where scripts are off, the answers stand below each question, folded
up; where they are on, book/_static/reading.js says for the option chosen whether it is
right, and why.
"""

from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from page_elements import element
from sphinx.util.docutils import SphinxDirective

QUIZZES = Path(__file__).resolve().parents[1] / "quizzes"
QUESTION_KEYS = {"question", "options", "proof"}
OPTION_KEYS = {"text", "right", "why"}


class QuizError(ValueError):
    """What is wrong with a quiz: the file, the question and the reason."""


def read(path: Path) -> list[dict]:
    """Give the questions of a file, or say what is wrong with it."""
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(each.stem for each in path.parent.glob("*.yml")))
        raise QuizError(f"{path.name}: no such quiz; there are {known}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or error
        raise QuizError(f"{path.name}: {line}not valid YAML: {problem}") from None
    if not isinstance(content, dict) or set(content) != {"questions"}:
        raise QuizError(f"{path.name}: needs one key, `questions`")
    questions = content["questions"]
    if not isinstance(questions, list) or not questions:
        raise QuizError(f"{path.name}: `questions` must be a list of questions")
    for number, question in enumerate(questions, 1):
        reason = problem_of(question)
        if reason:
            raise QuizError(f"{path.name}: question {number}: {reason}")
    return questions


def problem_of(question) -> str | None:
    """Say what is wrong with a question, if anything is."""
    if not isinstance(question, dict):
        return "must have `question` and `options`"
    if unknown := sorted(set(question) - QUESTION_KEYS, key=str):
        return f"unknown key `{unknown[0]}`"
    if not is_text(question.get("question")):
        return "`question` must be a text"
    options = question.get("options")
    if not isinstance(options, list) or not 2 <= len(options) <= 6:
        return "`options` must be a list of two to six options"
    for number, option in enumerate(options, 1):
        if reason := problem_of_option(option):
            return f"option {number}: {reason}"
    texts = [option["text"] for option in options]
    if len(set(texts)) < len(texts):
        return "two options have the same text"
    right = sum(bool(option.get("right")) for option in options)
    if right != 1:
        return f"one option must be `right: true`, and {right} are"
    return None


def problem_of_option(option) -> str | None:
    """Say what is wrong with an option, if anything is."""
    if not isinstance(option, dict):
        return "must have `text` and `why`"
    if unknown := sorted(set(option) - OPTION_KEYS, key=str):
        return f"unknown key `{unknown[0]}`"
    for key in ("text", "why"):
        if not is_text(option.get(key)):
            return f"`{key}` must be a text; put a number in quotes"
    if option.get("right", True) is not True:
        return "`right` can only be true; leave it out of wrong options"
    return None


def is_text(value) -> bool:
    """Whether something is a text with something in it."""
    return isinstance(value, str) and bool(value.strip())


class Quiz(SphinxDirective):
    """All questions of a quiz."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Make the forms."""
        name = self.arguments[0]
        path = QUIZZES / f"{name}.yml"
        self.env.note_dependency(str(path))
        try:
            questions = read(path)
        except QuizError as error:
            raise self.error(str(error)) from None
        self.env.metadata[self.env.docname]["quiz"] = name
        forms = [
            self.question(f"quiz-{number}", number, len(questions), question)
            for number, question in enumerate(questions, 1)
        ]
        return [element("div", *forms, class_="quiz", data_quiz=name)]

    def question(self, name: str, number: int, count: int, question: dict):
        """Make one question's form: options, verdict and folded answers."""
        title = element(
            "span", nodes.Text(f"Question {number} of {count}"), class_="quiz-number"
        )
        legend = element("legend", title, *self.inline(question["question"]))
        options, answers = [], []
        for index, option in enumerate(question["options"]):
            key = f"{name}-{index}"
            choice = element("input", type="radio", name=name, id=key, value=str(index))
            label = element("label", *self.inline(option["text"]), for_=key)
            options.append(element("div", choice, label, class_="quiz-option"))
            answers.append(self.answer(index, option))
        check = element(
            "button",
            nodes.Text("Check"),
            type="submit",
            class_="quiz-check",
            hidden=True,
        )
        rights = [bool(option.get("right")) for option in question["options"]]
        return element(
            "form",
            element("fieldset", legend, *options),
            element("div", check, class_="quiz-row"),
            element("div", class_="quiz-verdict", role="status"),
            element(
                "details",
                element("summary", nodes.Text("All answers, explained")),
                element("ul", *answers),
                class_="quiz-answers",
            ),
            class_="quiz-question",
            data_right=str(rights.index(True)),
        )

    def answer(self, index: int, option: dict):
        """Make the line that says of an option whether it is right, and why."""
        verdict = "Right" if option.get("right") else "Wrong"
        return element(
            "li",
            element(
                "span",
                element("strong", nodes.Text(f"{verdict}: ")),
                *self.inline(option["text"]),
            ),
            element("div", *self.block(option["why"]), class_="quiz-why"),
            data_option=str(index),
        )

    def block(self, text: str) -> list[nodes.Node]:
        """Parse Markdown."""
        holder = nodes.Element()
        lines = StringList(text.strip().splitlines(), self.arguments[0])
        self.state.nested_parse(lines, self.content_offset, holder)
        return holder.children

    def inline(self, text: str) -> list[nodes.Node]:
        """Parse Markdown that is one paragraph; give what is inside."""
        blocks = self.block(text)
        if len(blocks) != 1 or not isinstance(blocks[0], nodes.paragraph):
            raise self.error(f"quiz {self.arguments[0]}: not one paragraph: {text!r}")
        return blocks[0].children


def setup(app) -> dict:
    """Tell Sphinx of the directive."""
    app.setup_extension("page_elements")
    app.add_directive("quiz", Quiz)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
