"""Measuring: how fast, how good, how safe; what ``results/`` records besides runs."""
