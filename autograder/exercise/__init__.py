"""What exercises are judged by: a specification each, and what is said of answers."""
