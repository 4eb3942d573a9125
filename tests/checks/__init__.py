"""What checks say of answers: mistakes, messages, and what may stand for what."""
