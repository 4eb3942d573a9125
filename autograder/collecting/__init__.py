"""Collect what an instructor downloads into the class folder that is graded.

A form (``canvas``, ``moodle``, ``exchange``, ``repositories``) says who handed in
which files, and when; ``placing`` puts them where the grader looks. What was downloaded
is only read. What is not understood becomes a line of a list and stops nothing else.
"""
