"""Where the checks of this chapter send their readers."""

from autograder.expect import Chapter

chapter = Chapter(8, "08_vision_transformer")

DEEP = 3e-5  # tolerance of what has gone through several matrices in float32
