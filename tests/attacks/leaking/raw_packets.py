"""Makes packets of its own, below every protocol."""
# exercise: softmax
# where: answer

import socket

for family, kind in (
    (socket.AF_PACKET, socket.SOCK_RAW),
    (socket.AF_INET, socket.SOCK_RAW),
):
    try:
        socket.socket(family, kind, 255).sendto(b"attack-was-here", ("127.0.0.1", 0))
        print("LEAKED: a raw packet was sent")
    except (OSError, TypeError, ValueError):
        pass
