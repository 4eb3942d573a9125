"""The process that grades one submission: ``python -m autograder.grading.worker JOB``.

The folder JOB holds task.json; result.json is written there.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from autograder.files import write_beside
from autograder.grading.tasks import Task


def main(job: Path) -> None:
    """Grade the submission that JOB/task.json describes."""
    # jsonschema imports it if it can, for kinds of addresses that no notebook has; its
    # grammar takes three seconds to build
    sys.modules.setdefault("rfc3987_syntax", None)
    from autograder.grading.one import grade_one

    content = json.loads((job / "task.json").read_text(encoding="utf-8"))
    result = grade_one(Task(**content | {"notes": tuple(content["notes"])}), job)
    write_beside(job / "result.json", json.dumps(asdict(result)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
