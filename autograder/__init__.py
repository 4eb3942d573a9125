"""Checks that name the mistake, the generator of the exercises, and the grading of a class."""
