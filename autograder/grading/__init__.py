"""Grading a class with nbgrader: repair, run, feedback, and one result a submission."""
