"""Where the checks of this chapter send their readers."""

from autograder.expect import Chapter

chapter = Chapter(3, "03_positional_encoding")
