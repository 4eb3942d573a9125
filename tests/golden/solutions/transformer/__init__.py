"""The reference modules: every part of the model, as the exercises ask for it.

Generated from solutions/*.md by `make exercises`; change those.
"""
