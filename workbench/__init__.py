"""What chapters and exercises are given rather than asked for."""
