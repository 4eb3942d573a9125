"""Runs right and wrong answers of the exercises that a page checks, where no torch is.

    python -m tests.without_torch < jobs.json

prints what each is told, as JSON. A test runs the same here and where torch is.
"""

import json
import sys

from autograder.on_page import absent


def verdicts(jobs: list[dict]) -> list[dict]:
    """Judge all answers of all jobs.

    A job has an exercise (autograder.on_page.runner.Exercise), what was `written` for
    it and before it, and `others`: texts that are wrong, or right in another way.
    """
    from autograder.on_page import runner

    return [
        {
            "name": job["exercise"]["name"],
            "right": runner.judge(job["exercise"], job["written"]),
            "others": [
                runner.judge(
                    job["exercise"], job["written"] | {job["exercise"]["name"]: other}
                )
                for other in job["others"]
            ],
            "derived": dict(derived(runner, job)),
        }
        for job in jobs
    ]


def derived(runner, job: dict):
    """Hand in what the exercise's own specification knows to go wrong."""
    from autograder.exercise.spec import Specification

    exercise = job["exercise"]
    for place in dict.fromkeys(exercise["modules"].values()):
        for spec in vars(runner._module(place)).values():
            if isinstance(spec, Specification) and spec.exercise == exercise["name"]:
                for number, known in enumerate(spec.mistakes):
                    label = f"{spec.answer} {number} {known.name}"
                    yield label, handed_in(runner, job, spec, known)


def handed_in(runner, job: dict, spec, known) -> dict:
    """Put a mistake in the place of what is right, and run the check cell."""
    from autograder.exercise.card import card
    from autograder.expect import CheckFailure

    exercise = job["exercise"]
    names = runner._names_before(exercise, job["written"])
    exec(job["written"][exercise["name"]], names)
    names[spec.answer] = spec.handed_in(known, names[spec.answer])
    names["check"] = runner._checks(exercise["modules"])
    try:
        exec(exercise["check"], names)
    except CheckFailure as failure:
        shown = {"mistake": failure.mistake, "words": str(failure)}
        return shown | {"card": card(failure, ""), "known": known.name}
    return {"mistake": None, "words": "passed", "known": known.name}


if __name__ == "__main__":
    absent.stand_in("torch", "numpy")
    sys.modules["sacrebleu"] = None  # a page has not got it, either
    given = json.load(sys.stdin)
    told, sys.stdout = sys.stdout, sys.stderr
    json.dump(verdicts(given), told)
