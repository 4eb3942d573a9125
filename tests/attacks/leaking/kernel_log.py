"""Writes into the kernel's log and the system's."""
# exercise: softmax
# where: answer

import syslog

syslog.syslog("attack-was-here")
try:
    with open("/dev/kmsg", "w") as log:
        log.write("attack-was-here")
        print("LEAKED: wrote to the kernel's log")
except OSError:
    pass
