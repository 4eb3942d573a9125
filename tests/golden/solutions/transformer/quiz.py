"""Quiz: the answers to the exercises of chapter 2.

Generated from solutions/02_quiz.md by `make exercises`; change that file.
"""
