"""Wrong answers that were written from the notebooks alone, a module for a chapter."""
