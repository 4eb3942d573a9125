"""The door: what is typed is described and read here, and becomes typed values."""
