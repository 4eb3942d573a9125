"""Gradescope: a zip that grades a chapter or a sheet there, with the course's grader.

``build`` writes the zip, on the instructor's machine. ``run`` is what runs in
Gradescope's container, for each submission. Between them are the files that the zip
holds besides the two scripts which Gradescope asks for:

- ``paper.json``: the exercises with answers and hidden tests (``grading.paper``);
- ``hidden_seeds.key``: what hidden tests are drawn from (``grading.seeds``);
- ``settings.json``: what ``build`` was told;
- the wheel of the course, which holds no answers.
"""

PAPER, SETTINGS = "paper.json", "settings.json"
ROOT = "/autograder"  # where Gradescope has everything
ROOT_VARIABLE = "GRADESCOPE_ROOT"  # another place, to try a zip out
SOURCE, SUBMISSION = "source", "submission"
RESULTS = "results/results.json"
ENVIRONMENT = "venv"  # below ROOT
