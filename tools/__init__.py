"""What makes, checks and measures the course; none of it is installed.

Run a module from the root: ``python -m tools.site.book``. The reference's packages,
``transformer`` and ``mistakes``, can be imported by all of them.
"""

import sys
from pathlib import Path

_SOLUTIONS = str(Path(__file__).resolve().parents[1] / "solutions")
if _SOLUTIONS not in sys.path:
    sys.path.insert(0, _SOLUTIONS)
