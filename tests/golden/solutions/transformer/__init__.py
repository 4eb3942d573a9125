"""The reference modules: the parts of the model, as the exercises ask for.

Generated from solutions/*.md by `make exercises`; change those.
"""
