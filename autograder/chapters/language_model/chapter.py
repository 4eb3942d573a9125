"""Where the checks of this chapter send their readers."""

from autograder.expect import Chapter

chapter = Chapter(11, "11_language_model")
