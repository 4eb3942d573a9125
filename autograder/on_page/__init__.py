"""The checks in a reader's browser: Python there has its standard library, no PyTorch.

The exercises whose answers are no tensors are checked there by the course's own checks.
tools/site/on_page.py packs what they need; nothing here is used anywhere else.
"""
