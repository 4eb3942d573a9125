"""Connects to a socket that is no file, which hiding files does not hide."""
# exercise: softmax
# where: answer

import socket

try:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + ABSTRACT_SOCKET)
        connection.sendall(b"attack-was-here")
except OSError:
    pass
