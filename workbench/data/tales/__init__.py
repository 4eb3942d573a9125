"""Short stories from a grammar of the course's own.

``words`` and ``grammar`` are data, to be read; ``stories`` tells stories with them and
knows in each where agreement decides what must come next.
"""
