"""Using what was trained: translating, classifying, writing, scoring, comparing."""
