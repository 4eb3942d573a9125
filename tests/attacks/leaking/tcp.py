"""Sends a message to a server on the same machine."""
# exercise: softmax
# where: answer

import socket

for address in ("127.0.0.1", "localhost", "0.0.0.0"):
    try:
        with socket.create_connection((address, TCP_PORT), timeout=0.5) as connection:
            connection.sendall(b"attack-was-here")
    except OSError:
        pass
