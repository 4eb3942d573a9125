"""Data, models, training and records."""
