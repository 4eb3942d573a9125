"""Where the checks of training, writing and judging text send their readers."""

from autograder.expect import Chapter

chapter = Chapter(7, "07_decoder")

DEEP = 3e-5  # tolerance of what has gone through several matrices in float32
