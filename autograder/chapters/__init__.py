"""What grade cells call: one module of plain functions a chapter."""
