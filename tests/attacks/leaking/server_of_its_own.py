"""Waits for somebody to connect from outside."""
# exercise: softmax
# where: answer

import socket

with socket.socket() as server:
    server.settimeout(0.3)
    server.bind(("0.0.0.0", 0))
    server.listen()
    print(server.accept())
