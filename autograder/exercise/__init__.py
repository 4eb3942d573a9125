"""What every exercise is judged by: its specification, and what is said of an answer."""
