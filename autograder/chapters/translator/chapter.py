"""Where the checks of this chapter send their readers."""

from autograder.expect import Chapter

chapter = Chapter(9, "09_translator")
