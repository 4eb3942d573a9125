"""Connects to a socket that is a file in a shared folder."""
# exercise: softmax
# where: answer

import socket

try:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(UNIX_SOCKET)
        connection.sendall(b"attack-was-here")
except OSError:
    pass
