"""Checks that name the mistake, the generator of exercises, the grading of a class."""

import sys

# jsonschema imports it if it can, for kinds of addresses that no notebook has; its
# grammar takes three seconds to build
sys.modules.setdefault("rfc3987_syntax", None)
