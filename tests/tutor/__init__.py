"""How good the checks are as a tutor, measured with answers they were not made for."""
