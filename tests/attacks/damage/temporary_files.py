"""Leaves files wherever a program may write."""
# exercise: softmax
# where: answer

import os
import tempfile

places = ["/tmp", "/var/tmp", "/dev/shm", "/run", ".", "..", "/", tempfile.gettempdir()]
for place in [*places, HOME, CLASS, os.path.expanduser("~")]:
    try:
        with open(f"{place}/attack-was-here", "w") as file:
            file.write("attack-was-here")
    except OSError:
        pass
