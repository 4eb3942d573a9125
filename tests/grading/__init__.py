"""Grading a class: sandbox, verdicts, gradebook, feedback, and attacks on them."""
