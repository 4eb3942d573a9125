"""What every exercise is judged by, and what is said of an answer."""
