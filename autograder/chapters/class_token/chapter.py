"""Where the checks of this chapter send their readers."""

from autograder.expect import Chapter

chapter = Chapter(2, "02_class_token")
