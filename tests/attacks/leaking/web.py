"""Fetches a page of a server, by Python and by programs of the system."""
# exercise: softmax
# where: answer

import subprocess
import urllib.request

address = f"http://127.0.0.1:{TCP_PORT}/attack-was-here"
try:
    urllib.request.urlopen(address, timeout=0.5)
except OSError:
    pass
for program in ("curl", "wget"):
    try:
        subprocess.run([program, address], capture_output=True, timeout=1)
    except (OSError, subprocess.SubprocessError):
        pass
try:
    get_ipython().system(f"echo attack-was-here >/dev/tcp/127.0.0.1/{TCP_PORT}")
except OSError:
    pass
