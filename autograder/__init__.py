"""Checks that name the mistake, the generator of exercises, the grading of a class."""
